# JupyterLab with xlazy in it: Jupyter's own image and the wheels in dist, which are bound and not copied, so that the image
# has them once. tests/wheel/run.sh builds it where a container engine answers.
#
#   scripts/wheel.sh && docker build -t xlazy . && docker run --rm -p 8888:8888 -v "$PWD/notebooks:/home/jovyan/work" xlazy
FROM quay.io/jupyter/base-notebook:python-3.13
RUN --mount=type=bind,source=dist,target=/tmp/wheels pip install --no-cache-dir --no-index --find-links /tmp/wheels xlazy
