# docker build -t utility-calibration . && docker run --rm -v "$PWD:/work" utility-calibration score my.npz --output out/
FROM python:3.11-slim
WORKDIR /project
COPY requirements.lock .
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu -r requirements.lock
COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation -e .
WORKDIR /work
ENTRYPOINT ["utility-calibration"]
