"""What ODM and MI-ODM share: a band of margins, a constant in the kernel, where they train."""

from numbers import Real
from typing import Any, ClassVar

from bagwise._compat import Interval
from bagwise.bags import Bags
from bagwise.base import BagTags
from bagwise.exceptions import MemoryLimitError
from bagwise.svm.machinery._kernel_machine import MEMORY_CONSTRAINT, MaxRuleMachine
from bagwise.svm.machinery._odm_trainer import BandSettings, FeatureODM, KernelODM
from bagwise.svm.machinery._pass_trainer import PassTrainer
from bagwise.svm.machinery._representation import Representation


class ODMMachine(MaxRuleMachine):
    """Base of machines that want the margins in a band around 1."""

    _convergence_advice = "raise max_iter or tol, or lower C"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MaxRuleMachine._parameter_constraints,
        "theta": [Interval(Real, 0, 1, closed="left")],
        "nu": [Interval(Real, 0, None, closed="neither")],
        "bias": [Interval(Real, 0, None, closed="left")],
        "max_memory": MEMORY_CONSTRAINT,
    }

    theta: float
    nu: float
    bias: float

    def _settings(self, **solver: Any) -> BandSettings:
        return BandSettings(self.theta, self.nu, float(self.bias), **solver)

    def _counts_mistakes(self, bags: Bags) -> bool:
        # Margins cost something on either side of the band, and of instances.
        return bool((bags.sizes == 1).all())

    def _unit_cost(self) -> float:
        """Return what a margin of 0 costs: 1 is C."""
        return self.C / (1.0 - self.theta) ** 2

    def _is_linear(self) -> bool:
        """Tell whether there are features to train on."""
        return self.approx is not None or (isinstance(self.kernel, str) and self.kernel == "linear")

    def _trainer(
        self, representation: Representation[Any], settings: BandSettings
    ) -> FeatureODM | KernelODM:
        """Return where one output is trained."""
        trainer = representation.trainer
        if isinstance(trainer, PassTrainer) and trainer.has_gram:
            return KernelODM(trainer.gram_trainer, settings, trainer.rows)
        kind = FeatureODM if self._is_linear() else KernelODM
        return kind(trainer, settings)

    def _refuse_large(self, n_rows: int, what: str, advice: str) -> None:
        """Refuse a matrix between so many rows if it takes more than ``cache_size``."""
        megabytes = 8e-6 * n_rows**2
        if megabytes > self.cache_size:
            msg = (
                f"{type(self).__name__} needs the kernel between {what} in memory. That of "
                f"{n_rows:,} instances takes {megabytes:,.0f} MB, cache_size allows "
                f"{self.cache_size:,.0f}. Raise cache_size, fit fewer instances or choose {advice}."
            )
            raise MemoryLimitError(msg)

    def _invariances(self) -> dict[str, Any]:
        return {} if self.kernel == "linear" else super()._invariances()  # the bias is in the norm

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(max_rule=True, asymmetric=True, **self._invariances())
