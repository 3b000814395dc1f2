from .pack import bundle as bundle
