"""What decisions cost, as a person reads it."""

from utility_calibration.pipeline.reporting.costs import costs_table


def record(half):
    def method(cost, other, difference):
        against = {"difference": difference, "difference_half_width": half}
        return {
            "cost": cost,
            "cost_half_width": half,
            "expected": 0.1,
            "actions": {"wait": {"share": 1.0, "gap": 0.01}},
            "against": {other: against, "always wait": against},
        }

    methods = {
        "temperature": method(0.1383333, "vector", -0.0027777),
        "vector": method(0.1411111, "temperature", 0.0027777),
    }
    constant = {"wait": 0.4}
    return {"methods": methods, "best_constant": "wait", "constant": constant, "splits": 4}


def test_a_number_and_its_half_width_have_as_many_digits():
    text = costs_table(record(0.01046)).markdown()
    assert "| Temp. Scaling | 0.138 ± 0.010 | 0.1 | 0.003 ± 0.010 | – |" in text
    assert "| Vector Scaling | 0.141 ± 0.010 | 0.1 | -0.003 ± 0.010 | 0.003 ± 0.010 |" in text
