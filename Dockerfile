# JupyterLab with xlazy in it, from the wheels in dist. No test builds it, since no test has a container engine.
#
#   scripts/wheel.sh && docker build -t xlazy . && docker run --rm -p 8888:8888 -v "$PWD/notebooks:/home/jovyan/work" xlazy
FROM python:3.13-slim
RUN useradd --create-home jovyan
COPY dist/*.whl /tmp/wheels/
RUN pip install --no-cache-dir --find-links /tmp/wheels jupyterlab xlazy && rm -r /tmp/wheels
USER jovyan
WORKDIR /home/jovyan/work
EXPOSE 8888
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser"]
