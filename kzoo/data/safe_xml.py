"""What XML files may not do: they may come from anyone. Entities are not read."""

from kzoo.errors import UserError

# Options of lxml's parsers.
SAFE_XML = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}


def check_declares_no_entities(element, where: str):
    """Raise `UserError` if the XML of an element, named `where`, declares entities."""
    dtd = element.getroottree().docinfo.internalDTD
    if dtd is not None and next(dtd.iterentities(), None) is not None:
        raise UserError(f"{where}: declares entities, which are not read: remove its DOCTYPE")


def check_no_entities(element, where: str):
    """Raise `UserError` if an element of the XML named `where` has entities, which are not read."""
    from lxml import etree

    if (entity := next(element.iter(etree.Entity), None)) is not None:
        raise UserError(f"{where}, line {element.sourceline}: not XML (unknown {entity.text})")
