# One image for everything: `gapless broker`, `gapless proxy`, `gapless run`. Runs as a user without rights.
FROM python:3.11-slim-bookworm

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1
WORKDIR /opt/gapless

# The lock alone first, so that a change of code does not fetch 650 MB again.
COPY requirements.lock ./
RUN pip install --no-cache-dir --disable-pip-version-check -r requirements.lock

COPY pyproject.toml README.md LICENSE ./
COPY cluster cluster
COPY loadgen loadgen
COPY chaos chaos
COPY verifier verifier
RUN pip install --no-cache-dir --disable-pip-version-check --no-deps .

# A named volume takes its owner from here.
RUN useradd --create-home gapless && install -d -o gapless -g gapless /var/lib/gapless
USER gapless
WORKDIR /var/lib/gapless

CMD ["gapless", "--help"]
