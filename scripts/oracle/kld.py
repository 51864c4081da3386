"""The file in which llama-perplexity keeps a reference's log-probabilities, and the divergence it computes from it.

File: "_logits_", then int32 n_ctx, n_vocab, n_chunk, then n_chunk * n_ctx token ids (int32; a chunk's first is
replaced by BOS when the model wants one). Then a row for each scored position, chunk after chunk: positions n_ctx/2 to
n_ctx - 2, whose logits predict the next token. A row is two float32 (scale, min log-prob) and n_vocab uint16 q (an even
number of them is stored): log-prob = scale * q + min. Logits more than 16 below the row's largest count as 16 below.
"""
import numpy as np
import torch

MAGIC = b"_logits_"
BLOCK = 16  # rows compared at a time, so that temporary arrays stay small


def scored(n_ctx):
    return slice(n_ctx // 2, n_ctx - 1)


def row_words(n_vocab):
    return 2 * ((n_vocab + 1) // 2) + 4


def encode(logits):
    """Rows of the file for float32 logits (rows x vocabulary)."""
    logits = torch.from_numpy(logits)
    top = logits.max(1, keepdim=True).values
    low = torch.maximum(logits.min(1, keepdim=True).values, top - 16)
    log_sum = torch.logsumexp((logits - top).double(), 1, keepdim=True).float()
    scale = (top - low) / 65535
    words = np.zeros((len(logits), row_words(logits.shape[1])), dtype="<u2")
    words[:, :4] = torch.cat([scale, low - top - log_sum], 1).numpy().astype("<f4").view("<u2")
    q = torch.round((logits - low) / scale).clamp(0, 65535)
    words[:, 4:4 + logits.shape[1]] = q.numpy().astype("<u2")
    return words


class Writer:
    def __init__(self, path, n_ctx, n_vocab, tokens):
        self.file = open(path, "wb")
        n_chunk = len(tokens) // n_ctx
        self.file.write(MAGIC + np.array([n_ctx, n_vocab, n_chunk], dtype="<i4").tobytes())
        self.file.write(np.array(tokens[:n_chunk * n_ctx], dtype="<i4").tobytes())

    def add(self, logits):
        for first in range(0, len(logits), BLOCK):
            encode(logits[first:first + BLOCK]).tofile(self.file)

    def close(self):
        self.file.close()


class Reader:
    def __init__(self, path):
        with open(path, "rb") as file:
            if file.read(8) != MAGIC:
                raise SystemExit(f"{path}: not a file of log-probabilities")
            self.n_ctx, self.n_vocab, self.n_chunk = map(int, np.fromfile(file, "<i4", 3))
            self.tokens = np.fromfile(file, "<i4", self.n_chunk * self.n_ctx).reshape(self.n_chunk, self.n_ctx)
            shape = (self.n_chunk, self.n_ctx - 1 - self.n_ctx // 2, row_words(self.n_vocab))
            self.words = np.memmap(path, "<u2", "r", offset=file.tell(), shape=shape)

    def log_probs(self, chunk, rows):
        words = np.array(self.words[chunk, rows])
        scale, low = words[:, :4].copy().view("<f4").T[:, :, None]
        return torch.from_numpy(scale * words[:, 4:4 + self.n_vocab].astype(np.float32) + low)

    def targets(self, chunk):
        return torch.from_numpy(self.tokens[chunk][self.n_ctx // 2 + 1:].astype(np.int64))

    def nll(self, chunk):
        """The reference's negative log-likelihood at each scored position of the chunk."""
        targets = self.targets(chunk)
        blocks = [slice(first, first + BLOCK) for first in range(0, len(targets), BLOCK)]
        return np.concatenate([-self.log_probs(chunk, rows).gather(1, targets[rows, None])[:, 0].double().numpy()
                               for rows in blocks])

    def compare(self, chunk, logits):
        """(KL(reference || logits), same top token, negative log-likelihood) at each scored position of the chunk."""
        targets = self.targets(chunk)
        blocks = []
        for first in range(0, len(logits), BLOCK):
            rows = slice(first, first + BLOCK)
            base = self.log_probs(chunk, rows)
            log_probs = torch.from_numpy(logits[rows])
            log_probs = log_probs - torch.logsumexp(log_probs.double(), 1, keepdim=True).float()
            p = torch.where(base > -16, base.exp(), 0.0)
            divergence = (p * (base - log_probs)).double().sum(1)
            same = base.argmax(1) == log_probs.argmax(1)
            nll = -log_probs.gather(1, targets[rows, None])[:, 0]
            blocks.append((divergence.numpy(), same.numpy(), nll.double().numpy()))
        return tuple(np.concatenate(column) for column in zip(*blocks))
