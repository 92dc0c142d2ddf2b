"""OpenVINO's unmodified GPU plugin on Intel's OpenCL runtime for processors; no GPU is needed."""
