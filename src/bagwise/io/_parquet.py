"""Parquet, long or nested."""

from collections.abc import Iterator, Sequence
from typing import Any

from bagwise.io._arrow import OPTIONS, ArrowFile, reading_of
from bagwise.io._options import Options
from bagwise.io._problems import foreign, need
from bagwise.io._rows import Reading
from bagwise.io._streams import Source

__all__ = ["OPTIONS", "open_reading"]

_BATCH_BYTES = 8 * 2**20
_MAX_HEADER = 2**26


def open_reading(source: Source, options: Options) -> Reading:
    """Look at the footer of a Parquet file."""
    parquet = need("pyarrow.parquet", "Reading Parquet", "'bagwise[frames]'")

    def opened() -> Any:
        return parquet.ParquetFile(
            source.path,
            thrift_string_size_limit=_MAX_HEADER,
            thrift_container_size_limit=_MAX_HEADER,
        )

    with foreign(source.path, "this is not a Parquet file that can be read"), opened() as file:
        schema, metadata = file.schema_arrow, file.metadata
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        source.admit(sum(max(0, group.total_byte_size) for group in groups))
        source.admit(max(0, metadata.num_rows) * 4, "the rows")
        per_row = sum(group.total_byte_size for group in groups) // max(1, metadata.num_rows)

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        size = max(1, min(65536, _BATCH_BYTES // max(1, per_row)))
        with foreign(source.path, "the Parquet data are damaged"), opened() as file:
            stream = file.iter_batches(size, columns=list(columns), use_threads=True)
            for batch in stream:
                batch.validate(full=True)
                yield batch

    reading = reading_of(ArrowFile(source, "parquet", schema, batches), options)
    reading.n_rows = max(0, metadata.num_rows)
    return reading
