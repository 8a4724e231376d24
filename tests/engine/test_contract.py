"""SGLang's protocol, promise by promise, on the engine and on the real thing."""

import pytest

from tests.engine.conftest import EngineFactory, Models
from tests.engine.contract import Contract
from tests.support.sglang import ServerFactory

FLAGS = ["--max-running-requests", "4", "--random-seed", "1", "--enable-metrics"]


class TestEngine(Contract):
    """The embedded engine."""

    @pytest.fixture
    def url(self, engine: EngineFactory, models: Models) -> str:
        return engine(models.target, *FLAGS, *models.draft_flags("EAGLE3", "3,1,4")).url


@pytest.mark.sglang
class TestSglang(Contract):
    """The real SGLang: what the contract was read from."""

    @pytest.fixture
    def url(self, sglang_server: ServerFactory, models: Models) -> str:
        flags = [*FLAGS, "--dtype", "float32"]
        return sglang_server(models.target, *flags, *models.draft_flags("EAGLE3", "3,1,4"))
