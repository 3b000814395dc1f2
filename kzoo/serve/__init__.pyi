from .app import create_app as create_app
from .inputs import Limits as Limits
from .keys import Keys as Keys
from .served import Served as Served
from .server import serve as serve
from .startup import reserved as reserved
