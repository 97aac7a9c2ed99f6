"""One benchmark's part of a report: tables, curves, verdict and where each method fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.harness.units import Settings
from pipeline.reporting.curves import Curves
from pipeline.reporting.evidence import Statistics, evidence_of, number_of, statistics_of
from pipeline.reporting.failures import Failure
from pipeline.reporting.provenance import facts_of
from pipeline.reporting.report_page import Section
from pipeline.reporting.tables import TableSpec, build_table
from pipeline.reporting.verdict import verdict_of

Records = Mapping[str, Mapping[str, Any]]
"""What pipeline.failures found, by method and metric."""


def section_of(
    settings: Settings,
    summary: pd.DataFrame,
    bounds: pd.DataFrame,
    specs: Sequence[TableSpec],
    curves: Sequence[Curves],
    records: Records,
    studies: Mapping[str, Path] | None = None,
) -> Section:
    """The section of a benchmark; the verdict reads the first of `specs`, its main table.

    `summary` and `bounds` are those of reporting.collect: statistics and certificates.
    """
    benchmark = settings["benchmark"]
    tables = [build_table(summary, spec, bounds) for spec in specs]
    statistics = statistics_of(summary, benchmark["name"])
    main = tables[0]
    certified = {certificate.key: certificate.upper for certificate in main.certificates}
    return Section(
        key=specs[0].name,
        title=benchmark["title"],
        specs=specs,
        tables=tables,
        statistics=statistics,
        verdict=verdict_of(
            evidence_of(main),
            main.test_points,
            main.splits,
            certified,
            tested=main.look == "default",
        ),
        curves=curves,
        failures=_failures(specs[0].methods, statistics, records),
        facts=facts_of(settings),
        study_svgs=studies or {},
    )


def _failures(
    methods: Sequence[str], statistics: Statistics, records: Records
) -> dict[str, dict[str, Failure]]:
    found: dict[str, dict[str, Failure]] = {}
    for method in methods:
        for metric, record in records.get(method, {}).items():
            row = statistics.get((method, metric), {})
            found.setdefault(metric, {})[method] = Failure(
                name=record["name"],
                error=number_of(row, "mean"),
                floor=number_of(row, "floor_q95"),
                diagram=record["diagram"],
                **{key: record[key] for key in ("low", "high", "share", "gap")},
            )
    return found
