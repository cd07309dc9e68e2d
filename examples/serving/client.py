"""Ask a server for digits, from several threads at once, with nothing but Python and NumPy.

    tilescope serve-model live models &
    python examples/serving/client.py

`tritonclient` does the same in fewer lines; here it can be seen what goes over the wire.
"""

from __future__ import annotations

import argparse
import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np

from simulator.examples.mlp_digits import load_digits

HEADER = "Inference-Header-Content-Length"


def ask(connection: http.client.HTTPConnection, images: np.ndarray) -> tuple[np.ndarray, dict]:
    """Send images as raw bytes; return probabilities [image][digit], and what the server says."""
    head = {
        "inputs": [{"name": "image", "shape": list(images.shape), "datatype": "FP32",
                    "parameters": {"binary_data_size": images.nbytes}}],
        "parameters": {"binary_data_output": True},
    }  # fmt: skip
    text = json.dumps(head).encode()
    connection.request("POST", "/v2/models/digits/infer", text + images.astype("<f4").tobytes(),
                       {HEADER: str(len(text))})  # fmt: skip
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(json.loads(body)["error"])
    length = int(answer.headers[HEADER])
    found = np.frombuffer(body[length:], "<f4").reshape(len(images), -1)
    return found, json.loads(body[:length])["parameters"]


def asked(port: int, images: np.ndarray, clients: int) -> tuple[np.ndarray, list[dict]]:
    """Ask for each image alone, from so many clients at once, in the order of the images."""

    def part(mine: np.ndarray) -> list[tuple[np.ndarray, dict]]:
        with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            return [ask(connection, image[None]) for image in mine]

    with ThreadPoolExecutor(clients) as pool:
        answers = [one for each in pool.map(part, np.array_split(images, clients)) for one in each]
    return np.concatenate([found for found, _ in answers]), [told for _, told in answers]


def main(port: int = 8000, requests: int = 297, clients: int = 8) -> float:
    """Ask, print what came of it, return the share of digits that are right."""
    digits = load_digits()
    images, labels = digits.test_images[:requests], digits.test_labels[:requests]
    found, told = asked(port, images.astype(np.float32), clients)
    right = float((found.argmax(axis=1) == labels).mean())
    rows = np.mean([one["batch_rows"] for one in told])
    device = np.median([one["device_us"] for one in told])
    host = np.median([one["host_us"] for one in told])
    print(f"{right:.1%} of {len(labels)} digits are right")
    print(f"batches of {rows:.1f} rows; a batch takes {device:.1f} us on the device")
    print(f"a request takes {host:.0f} us here, where the device is simulated")
    return right


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Ask a server for digits.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--requests", type=int, default=297)
    parser.add_argument("--clients", type=int, default=8)
    arguments = parser.parse_args()
    main(arguments.port, arguments.requests, arguments.clients)
