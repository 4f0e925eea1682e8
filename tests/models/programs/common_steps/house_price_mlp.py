"""House price mlp.

MISTAKE (silent): regression loss of (B,1) against (B,) broadcasts to (B,B).
"""
import torch
import torch.nn as nn


class PriceRegressor(nn.Module):
    def __init__(self, n_num, n_zip, zip_dim=6):
        super().__init__()
        self.zip_emb = nn.Embedding(n_zip, zip_dim)
        self.bn = nn.BatchNorm1d(n_num)
        self.body = nn.Sequential(
            nn.Linear(n_num + zip_dim, 64),
            nn.ReLU(),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )

    def forward(self, num, zipcode):
        z = torch.cat((self.bn(num), self.zip_emb(zipcode)), dim=-1)
        return self.body(z)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = PriceRegressor(n_num=9, n_zip=40)
        self.loss_fn = nn.MSELoss()

    def forward(self, num, zipcode, price):
        log_price = torch.log1p(price)
        pred = self.model(num, zipcode)
        loss = self.loss_fn(pred, log_price)  # fault: silent-broadcast-in-loss
        return loss


def example():
    torch.manual_seed(6)
    num = torch.randn(8, 9)
    zipcode = torch.randint(0, 40, (8,))
    price = torch.rand(8) * 5e5 + 5e4
    return num, zipcode, price
