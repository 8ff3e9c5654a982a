"""Settings about metrics that there are not are reported before anything starts."""

from pytest_django import Settings

from cluster.checks import check_series


def test_a_series_of_a_metric_that_there_is_not_is_reported(settings: Settings) -> None:
    settings.PROMETHEUS_METRICS = {"instance_cpu_usage": "cpu", "instance_cpu_util": "cpu"}
    [problem] = check_series()
    assert str(problem.msg).startswith("PROMETHEUS_METRICS: instance_cpu_util is no metric; there are host_cpu_usage,")
