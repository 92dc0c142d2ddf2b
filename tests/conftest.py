"""Settings of hypothesis for every test."""

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow]

settings.register_profile("ci", max_examples=60, derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("nightly", max_examples=5000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
