"""What we take from nbval, all of it: its cells, how they are compared, and its choice of a kernel.

`tests/test_approximate.py` says what of it must not change.
"""

from __future__ import annotations

from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager
from nbval.plugin import IPyNbCell

from approximate import Outputs, Tolerance, settle_outputs

__all__ = ["CURRENT_ENV_KERNEL_NAME", "IPyNbCell", "NbvalKernelspecManager", "compare_within"]


def compare_within(cell: IPyNbCell, tolerance: Tolerance) -> None:
    """Let the numbers that this cell prints differ from the stored ones by the tolerance.

    nbval decides as ever, and shows the difference; it is given outputs in which what is tolerated reads as stored.
    """
    strictly = cell.compare_outputs

    def compare_outputs(test: Outputs, ref: Outputs, skip_compare: tuple[str, ...] | None = None) -> bool:
        settled, reports = settle_outputs(ref, test, tolerance)
        same = strictly(settled, ref, skip_compare)
        if not same:
            cell.comparison_traceback[:0] = reports
        return same

    cell.compare_outputs = compare_outputs
