"""Without a network an address is an error within seconds; files fetched before still load."""

import shutil
import socket
import time

import pytest
import urllib3
from huggingface_hub import constants
from kagglehub.cache import Cache
from kagglehub.handle import parse_model_handle

from keras_bert import BertBackbone, BertClassifier, BertMaskedLM
from keras_bert.checkpoints import open_checkpoint
from keras_bert.checkpoints import source as source_module
from keras_bert.checkpoints.source import Source, cached
from tests.serving.made import TINY

ADDRESSES = [
    "hf://google-bert/bert-base-uncased",
    "kaggle://keras/bert/keras/bert_tiny_en_uncased",
    "kaggle://keras/bert/keras/bert_tiny_en_uncased/2",
    "bert_tiny_en_uncased",
]


@pytest.fixture(autouse=True)
def nothing_fetched(tmp_path, monkeypatch):
    """Empty caches, and no proxy of this machine's."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path / "kaggle"))
    # An answer within seconds: nobody waits to try again.
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail(f"waits for {seconds} s"))


def check(address, load=BertMaskedLM.from_preset):
    with pytest.raises(ConnectionError, match="no network: .*config.json of .*bert") as caught:
        load(address)
    assert "a folder, and the presets of the package, bert_mini" in str(caught.value)
    assert address in str(caught.value)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_socket_opens(address, monkeypatch):
    def refuse(*_, **__):
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    check(address)


def test_no_name_is_known(monkeypatch):
    def refuse(*_, **__):
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for address in ADDRESSES[::2]:
        check(address, open_checkpoint)


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "http://10.255.255.1:3128"])
def test_an_unroutable_proxy(proxy, monkeypatch):
    monkeypatch.setattr(source_module, "_SECONDS", 1)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, proxy)
    check(ADDRESSES[0])
    check(ADDRESSES[-1])


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("reset"),
        TimeoutError("timed out"),
        urllib3.exceptions.ConnectTimeoutError("timed out"),
    ],
)
def test_a_connection_that_is_lost_on_the_way(error, monkeypatch):
    def lose(*_):
        try:
            raise ConnectionResetError("reset") if isinstance(error, Exception) else error
        except ConnectionResetError as cause:
            raise error from cause

    monkeypatch.setattr(source_module, "is_reachable", lambda _: True)
    monkeypatch.setattr(source_module.preset_utils, "get_file", lose)
    check(ADDRESSES[0])


def test_other_errors_stay(monkeypatch):
    def gated(*_):
        raise ValueError("accept the terms")

    monkeypatch.setattr(source_module, "is_reachable", lambda _: True)
    monkeypatch.setattr(source_module.preset_utils, "get_file", gated)
    with pytest.raises(ValueError, match="accept the terms"):
        BertClassifier.from_preset(ADDRESSES[0], num_classes=2)


def test_what_was_fetched_before_loads(tmp_path, monkeypatch):
    monkeypatch.setattr(source_module, "is_reachable", lambda _: False)
    repository = tmp_path / "hf" / "models--google-bert--bert-base-uncased"
    snapshot = repository / "snapshots" / ("0" * 40)
    shutil.copytree(TINY, snapshot)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    assert cached(ADDRESSES[0], "config.json") == str(snapshot / "config.json")
    model = BertClassifier.from_preset(ADDRESSES[0])
    assert isinstance(model.backbone, BertBackbone) and model.preprocessor is not None
    assert not Source(ADDRESSES[0]).has("tokenizer.json")


def test_kaggle_files_that_were_fetched_before(tmp_path):
    folder = tmp_path / "kaggle" / "models" / "keras" / "bert" / "keras" / "bert_tiny_en_uncased"
    (folder / "2").mkdir(parents=True)
    assert cached(ADDRESSES[2], "config.json") is None
    (folder / "2" / "config.json").write_text("{}")
    handle = parse_model_handle(ADDRESSES[2].removeprefix("kaggle://"))
    Cache().mark_as_complete(handle, "config.json")
    assert cached(ADDRESSES[2], "config.json") == str(folder / "2" / "config.json")
