from .document import Document as Document
from .document import is_document as is_document
from .document import translate_document as translate_document
