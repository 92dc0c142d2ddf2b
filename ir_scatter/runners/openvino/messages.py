"""What OpenVINO says, shortened to what matters, and what kind of failure it is."""

import re

from ir_scatter.core.process import Failure, shortened

_NOISE = (
    "FrontEnd API failed",
    "Model wasn't fully converted",
    "Summary:",
    "-- Conversion is failed",
)
_PLACE = re.compile(r"Check '.*?' failed at \S+:\d+:?|Exception from \S+:\d+:?|\bat src/\S+:\d+:?")
_NODE = re.compile(r"While validating node '\w+::(\w+) .*?' with friendly_name '[^']*':?")
_ONNX_NODE = re.compile(r"While validating ONNX node '<Node\((\w+)\): (.*?)>':?")
_DETAIL = re.compile(r"-- \S+ with a message:")
_FOLDER = re.compile(r'"?(?:/[^/\s":]+)+/([^/\s":]+)"?')
_UNSUPPORTED = re.compile(
    r"No conversion rule found|^Cannot create \w+ layer|from unsupported opset|Not Implemented|"
    r"doesn't contain the operation|Unable to read the model|Unsupported operation of type|"
    r"is not supported yet|"
    r"^Operation: .* of type .* is not supported",
    re.MULTILINE,
)


def failure(error: BaseException) -> Failure:
    """Return what OpenVINO does not want, or does not know."""
    return Failure("unsupported" if _UNSUPPORTED.search(str(error)) else "refused", sentence(error))


def sentence(error: BaseException) -> str:
    """Return what matters of a message: no places in OpenVINO's sources, no folders of this machine."""
    text = _FOLDER.sub(r"\1", _PLACE.sub("", str(error)))
    text = _NODE.sub(r"\1:", _ONNX_NODE.sub(r"\1 \2:", _DETAIL.sub("", text)))
    lines = (line.strip() for line in text.splitlines())
    kept = [line.removeprefix("-- ") for line in lines if line and not line.startswith(_NOISE)]
    return shortened(" ".join(dict.fromkeys(kept))) or type(error).__name__
