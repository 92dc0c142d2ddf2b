"""OpenVINO's GPU plugin, unmodified, on Intel's OpenCL runtime for processors: no GPU is needed."""
