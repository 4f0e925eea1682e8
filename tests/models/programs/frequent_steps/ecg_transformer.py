"""Beat classification on windows of multi-lead ECG, x: (batch, time, leads).

MISTAKE (silent): batch_first=True is missing, attention runs over the batch axis of the (B, T, D) input.
"""
import torch
import torch.nn as nn


class ECGTransformer(nn.Module):
    def __init__(self, n_leads=4, d_model=24, n_classes=5, window=20):
        super().__init__()
        self.input_proj = nn.Linear(n_leads, d_model)
        self.pos_embedding = nn.Parameter(torch.randn(1, window, d_model) * 0.02)
        self.encoder_layer = nn.TransformerEncoderLayer(d_model, nhead=4, dim_feedforward=48, dropout=0.1)  # fault: reduction-over-batch-axis
        self.fc = nn.Linear(d_model, n_classes)

    def forward(self, x):
        x = self.input_proj(x) + self.pos_embedding
        x = self.encoder_layer(x)  # fault: reduction-over-batch-axis
        return self.fc(x.mean(dim=1))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ECGTransformer()
        self.register_buffer("class_weight", torch.tensor([0.3, 1.0, 1.0, 2.0, 2.0]))

    def forward(self, ecg, beat):
        logits = self.model(ecg)
        return nn.functional.cross_entropy(logits, beat, weight=self.class_weight)


def example():
    g = torch.Generator().manual_seed(50)
    return torch.randn(6, 20, 4, generator=g), torch.randint(0, 5, (6,), generator=g)
