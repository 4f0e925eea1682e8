import torch
import torch.nn.functional as F
from torch import nn


class CLIP(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.image, self.text = nn.Linear(40, d), nn.Linear(25, d)
        self.logit_scale = nn.Parameter(torch.tensor(2.659))

    def forward(self, img, txt):
        i = F.normalize(self.image(img), dim=-1)
        t = F.normalize(self.text(txt), dim=-1)
        sim = self.logit_scale.exp() * i @ t.t()
        per_image = sim.log_softmax(dim=1).diagonal()
        per_text = sim.log_softmax(dim=0).diagonal()
        return -0.5 * (per_image.mean() + per_text.mean())


def example():
    return (torch.randn(6, 40), torch.randn(6, 25))


Step = CLIP
OPEN = [{0: "batch"}, {0: "batch"}]
