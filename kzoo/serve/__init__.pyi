from .app import create_app as create_app
from .checks import Limits as Limits
from .served import Served as Served
from .server import reserved as reserved
from .server import serve as serve
