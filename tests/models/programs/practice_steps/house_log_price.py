"""House price regression from tabular features with a categorical district.

MISTAKE (silent): the head returns [N, 1] and the target is [N], so mse_loss broadcasts to [N, N]; the
prediction has to be squeezed (or the target unsqueezed).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class PriceNet(nn.Module):
    def __init__(self, n_num=9, n_district=12, hidden=32):
        super().__init__()
        self.district = nn.Embedding(n_district, 4)
        self.body = nn.Sequential(
            nn.Linear(n_num + 4, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
        )
        self.head = nn.Linear(hidden, 1)

    def forward(self, numeric, district):
        x = torch.cat([numeric, self.district(district)], dim=1)
        return self.head(self.body(x))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = PriceNet()

    def forward(self, numeric, district, price):
        log_price = torch.log1p(price)
        pred = self.model(numeric, district)
        return F.mse_loss(pred, log_price)  # fault: silent-broadcast-in-loss


class Fixed(Step):
    def forward(self, numeric, district, price):
        log_price = torch.log1p(price)
        pred = self.model(numeric, district)
        return F.mse_loss(pred.squeeze(1), log_price)


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(6, 9, generator=g),
        torch.randint(0, 12, (6,), generator=g),
        torch.rand(6, generator=g) * 5 + 0.5,
    )


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]
