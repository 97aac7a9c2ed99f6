# docker build -t utility-calibration . && docker run --rm -v "$PWD:/work" utility-calibration score my.npz --output out/
# The digest is that of docker-library/repo-info, repos/python/remote/3.11-slim.md, of 5 August 2026 (Python 3.11.15).
FROM python:3.11-slim@sha256:90744cff8f32887f075c47d747a173ff333e9e98801667af93c357fa9f5e28ff
WORKDIR /project
COPY requirements.lock .
# The second index has torch without CUDA. Whatever an index serves must have a hash of the lock.
RUN pip install --no-cache-dir --require-hashes --extra-index-url https://download.pytorch.org/whl/cpu -r requirements.lock
COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation -e .
WORKDIR /work
ENTRYPOINT ["utility-calibration"]
