"""Every fault by name, to run a test over all of them.

>>> @pytest.mark.parametrize(("name", "format"), FAULT_CASES)
>>> def test_my_client(name, format):
...     with ProviderServer(format, [FAULTS[name]], repeat=True) as server: ...
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from recollect.profiles import WireName
from recollect.testing.content_faults import CALL_FAULTS, EMPTY_FAULTS
from recollect.testing.ending_faults import FINISH_FAULTS, STREAM_END_FAULTS
from recollect.testing.error_faults import ERROR_FAULTS
from recollect.testing.fault import Fault
from recollect.testing.transport_faults import LIE_FAULTS, SPLIT_FAULTS

FAULT_GROUPS: Mapping[str, tuple[Fault, ...]] = MappingProxyType(
    {
        "Finish words and errors in a stream": FINISH_FAULTS,
        "Ends of a stream": STREAM_END_FAULTS,
        "Empty replies": EMPTY_FAULTS,
        "Calls": CALL_FAULTS,
        "Pieces and delays": SPLIT_FAULTS,
        "Lies": LIE_FAULTS,
        "Errors": ERROR_FAULTS,
    }
)
FAULTS: Mapping[str, Fault] = MappingProxyType(
    {fault.name: fault for group in FAULT_GROUPS.values() for fault in group}
)
FAULT_CASES: tuple[tuple[str, WireName], ...] = tuple(
    (name, format_) for name, fault in FAULTS.items() for format_ in fault.formats
)
