"""Arrow IPC files and streams (also called Feather), memory-mapped: one batch is not copied."""

from collections.abc import Iterator, Sequence
from typing import Any

from bagwise.io._arrow import OPTIONS, ArrowFile, reading_of
from bagwise.io._options import Options
from bagwise.io._problems import foreign, need
from bagwise.io._rows import Reading
from bagwise.io._streams import Source

__all__ = ["OPTIONS", "open_reading"]

_MAGIC = b"ARROW1"


def open_reading(source: Source, options: Options) -> Reading:
    """Look at the schema of an Arrow file or stream."""
    pa = need("pyarrow", "Reading Arrow files", "'bagwise[frames]'")
    with source.path.open("rb") as file:
        is_file = file.read(len(_MAGIC)) == _MAGIC

    def opened() -> Any:
        mapped = pa.memory_map(str(source.path))
        return pa.ipc.open_file(mapped) if is_file else pa.ipc.open_stream(mapped)

    with foreign(source.path, "this is not an Arrow file that can be read"), opened() as reader:
        schema = reader.schema

    def batches(columns: Sequence[str]) -> Iterator[Any]:
        with foreign(source.path, "the Arrow data are damaged"), opened() as reader:
            stream = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            for batch in stream:
                batch.validate(full=True)
                yield batch.select(list(columns))

    return reading_of(ArrowFile(source, "arrow", schema, batches), options)
