"""The API-behaviour suite: the same checks on the embedded and on the real API server."""

import pytest

pytest.register_assert_rewrite("tests.api_behaviour.wire")
