# A server of a trained preset. In a clone:
#   docker build -t kzoo .
#   docker run --rm -p 8501:8501 kzoo                    # another preset: append its name and options
FROM python:3.13-slim AS build
COPY . /kzoo
RUN pip wheel --no-cache-dir --no-deps -w /wheels /kzoo /kzoo/presets
RUN python -m venv /venv && \
    /venv/bin/pip install --no-cache-dir -c /kzoo/constraints.txt \
        "$(echo /wheels/kzoo-*.whl)[tensorflow,serve]" /wheels/kzoo_shelf-*.whl

FROM python:3.13-slim
COPY --from=build /venv /venv
# Caches are written to /tmp: the root may be read-only.
ENV PATH=/venv/bin:$PATH HOME=/tmp KZOO_CACHE=/tmp/kzoo
USER 65534
EXPOSE 8501
HEALTHCHECK --start-period=2m \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/healthz')"]
ENTRYPOINT ["kzoo", "serve", "--host", "0.0.0.0"]
CMD ["pope_small_multi30k_en_de"]
