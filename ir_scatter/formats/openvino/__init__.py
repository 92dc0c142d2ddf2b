"""Files of OpenVINO IR: indexed by place, parsed where asked, edited as text."""
