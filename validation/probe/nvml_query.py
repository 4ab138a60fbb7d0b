"""One door to NVML: every query is guarded, so that one refusal never takes another value down."""

from typing import Any, Callable, Dict, Sequence, Tuple

import pynvml

ERROR_NAMES: Dict[int, str] = {getattr(pynvml, name): name for name in dir(pynvml) if name.startswith("NVML_ERROR_")}
# An older or newer driver refuses a call it does not have in one of these ways.
NOT_THIS_WAY = (
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
)
VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by NVML_VALUE_TYPE_*
Query = Callable[[], Any]
Table = Sequence[Tuple[str, Query]]


def error_name(error: Any) -> str:
    """NVML's name of an NVMLError: ``NVML_ERROR_NOT_SUPPORTED``."""
    return ERROR_NAMES.get(error.value, "NVML_ERROR_%s" % error.value)


def guarded(query: Query) -> Any:
    """The value of one query, or ``{"error": name}``. A query never takes another one down."""
    try:
        return query()
    except pynvml.NVMLError as error:
        return {"error": error_name(error)}
    except Exception as error:  # noqa: BLE001 - becomes the cause of one unknown value
        return {"error": "%s: %s" % (type(error).__name__, error)}


def group(table: Table) -> Dict[str, Any]:
    """Every query of a table, each guarded."""
    return {name: guarded(query) for name, query in table}


def first_of(query: Query, *others: Query) -> Any:
    """The first of these queries that the driver has; the last one's NVMLError where it has none of them."""
    try:
        return query()
    except pynvml.NVMLError as error:
        if not others or error.value not in NOT_THIS_WAY:
            raise
    return first_of(*others)


def field(handle: Any, field_id: int, scope: int = 0) -> Any:
    """One NVML field value; scope is the link for NVLink fields."""
    value = pynvml.nvmlDeviceGetFieldValues(handle, [(field_id, scope)])[0]
    if value.nvmlReturn:
        raise pynvml.NVMLError(value.nvmlReturn)
    return getattr(value.value, VALUE_MEMBERS[value.valueType])


def text(value: Any) -> str:
    """A string of NVML, which some calls return as bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
