# The image has Usher and what it runs on; everything that builds stays behind in the first stage.
FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/usher && python -m venv /opt/build
COPY requirements.lock requirements-extras.lock requirements-build.lock ./
# The default has the extra `semantic`; requirements-extras.lock adds Redis, PostgreSQL and traces.
ARG LOCK
RUN /opt/usher/bin/python -m pip install --no-cache-dir --require-hashes -r "${LOCK:-requirements.lock}"
RUN /opt/build/bin/python -m pip install --no-cache-dir --require-hashes -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY config ./config
COPY proxy ./proxy
RUN /opt/build/bin/python -m pip wheel --no-deps --no-build-isolation --wheel-dir /opt/dist .
RUN /opt/usher/bin/python -m pip install --no-deps --no-index --find-links /opt/dist usher-gateway
RUN /opt/usher/bin/python -m pip uninstall --yes pip

FROM python:3.13-slim
RUN python -m pip uninstall --yes pip && useradd --uid 10001 --create-home usher \
    && install --directory --owner usher --mode 700 /data
COPY --from=build /opt/usher /opt/usher
# A container listens on all of its own addresses; which of them others reach is said by `docker run -p`.
ENV PATH=/opt/usher/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    USHER_DATA=/data \
    USHER_SERVER__HOST=0.0.0.0 \
    USHER_SERVER__PORT=8787 \
    USHER_SERVER__INSECURE=true
USER usher
WORKDIR /home/usher
VOLUME /data
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ['USHER_SERVER__PORT'] + '/livez', timeout=2)"]
ENTRYPOINT ["usher"]
CMD ["serve"]
