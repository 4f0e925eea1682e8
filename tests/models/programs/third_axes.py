import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


# Wrong: the head gives (6, 1) and the target is (6,), so the smooth L1 compares everybody with everybody; squeeze the prediction.
@step(lstm=nn.LSTM(3, 4, batch_first=True), fc=linear(4, 1), x=randn(N, 5, 3), y=randn(N))
def temperature_forecast_lstm(self, x, y):
    out, (_h, _c) = self.lstm(x)
    out = self.fc(out[:, -1, :])
    d = torch.abs(out - y)  # fault: silent-broadcast-in-loss
    loss = torch.where(d < 1.0, 0.5 * d**2, d - 0.5)
    return loss.mean()


# Wrong: the loader gives targets of shape (6, 1) as the net does; squeezing only the target leaves (6, 1) against (6,).
@step(
    features=nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
    fc=linear(2 * 4 * 2, 1),
    x=randn(N, 1, 8, 4),
    y=rand(N, 1),
)
def steering_angle_squeezed_target(self, x, y):
    pred = self.fc(self.features(x))
    target = y.squeeze()
    diff = pred - target  # fault: silent-broadcast-in-loss
    return torch.mean(diff**2)


# Wrong: (6, 6, 1) minus (6, 6) broadcasts to (6, 6, 6) because there are as many steps as sequences; squeeze(-1) is missing.
@step(
    fixed=True,
    gru=nn.GRU(2, 3, batch_first=True, bidirectional=True),
    out=linear(6, 1),
    x=randn(N, 6, 2),
    y=randn(N, 6),
    mask=flags(N, 6),
)
def load_curve_every_hour(self, x, y, mask):
    h, _ = self.gru(x)
    pred = self.out(h)
    err = (pred - y).abs()  # fault: silent-broadcast-in-loss
    return (err * mask).sum() / mask.sum().clamp(min=1)


# Wrong: mean and std of each row lack keepdim, so they are subtracted along the columns of the square batch; keepdim=True is right.
@step(fixed=True, net=mlp(6, 3), x=randn(N, 6), y=labels(3, N))
def rows_standardised_without_keepdim(self, x, y):
    mu = x.mean(dim=1)
    sd = x.std(dim=1)
    x = (x - mu) / (sd + 1e-6)  # fault: silent-broadcast-in-loss
    return F.cross_entropy(self.net(x), y)


# Wrong: the loss per sample is (6,) and the sample weight (6, 1), so the product is (6, 6); the weight must stay (6,).
@step(
    net=nn.Sequential(nn.Embedding(20, 4), nn.Flatten(), nn.Linear(12, 4)),
    class_weight=Buffer(torch.tensor([0.2, 1.0, 3.0, 0.7])),
    x=labels(20, N, 3),
    y=labels(4, N),
)
def sample_weights_unsqueezed(self, x, y):
    logits = self.net(x)
    w = self.class_weight[y].unsqueeze(1)
    loss = F.cross_entropy(logits, y, reduction="none") * w  # fault: silent-broadcast-in-loss
    return loss.mean()


# Wrong: softmax over dim=1 shares the attention among the heads; each query has to share it among the keys (dim=-1).
@step(
    qkv=linear(8, 24),
    proj=linear(8, 8),
    fc=linear(8, 3),
    x=randn(N, 5, 8),
    y=labels(3, N),
)
def heads_share_attention(self, x, y):
    B, T, C = x.shape
    q, k, v = self.qkv(x).chunk(3, dim=-1)
    q = q.view(B, T, 2, C // 2).transpose(1, 2)
    k = k.view(B, T, 2, C // 2).transpose(1, 2)
    v = v.view(B, T, 2, C // 2).transpose(1, 2)
    att = (q @ k.transpose(-2, -1)) * (C // 2) ** -0.5
    att = F.softmax(att, dim=1)  # fault: class-axis-position
    out = (att @ v).transpose(1, 2).reshape(B, T, C)
    return F.cross_entropy(self.fc(self.proj(out).mean(1)), y)


# Wrong: the layer is not batch_first but gets (batch, time, width), so words of different sentences attend to each other.
@step(
    emb=nn.Embedding(15, 4),
    encoder=nn.TransformerEncoderLayer(d_model=4, nhead=2, dim_feedforward=8, dropout=0.0),
    fc=linear(4, 2),
    tokens=labels(15, N, 5),
    y=labels(2, N),
)
def sentiment_transformer_forgets_batch_first(self, tokens, y):
    x = self.emb(tokens) * 4**0.5
    x = self.encoder(x)  # fault: reduction-over-batch-axis
    x = x.mean(dim=1)
    return F.cross_entropy(self.fc(x), y)


# Wrong: h is (2, 6, 4); view(6, 8) joins the states of two neighbours instead of the two directions; transpose(0, 1) first.
@step(
    emb=nn.Embedding(12, 3),
    lstm=nn.LSTM(3, 4, batch_first=True, bidirectional=True),
    fc=linear(8, 3),
    tokens=labels(12, N, 5),
    y=labels(3, N),
)
def bidirectional_state_viewed(self, tokens, y):
    _, (h, _) = self.lstm(self.emb(tokens))
    h = h.view(h.size(1), -1)  # fault: class-axis-position
    return F.cross_entropy(self.fc(h), y)


# Wrong: pictures come as (batch, height, width, 3); reshape mixes pixels and colours, permute(0, 3, 1, 2) is right.
@step(
    net=nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)
    ),
    img=rand(N, 8, 7, 3),
    y=labels(5, N),
)
def numpy_picture_reshaped(self, img, y):
    x = img.reshape(img.size(0), 3, 8, 7)  # fault: class-axis-position
    x = (x - 0.5) / 0.5
    return F.cross_entropy(self.net(x), y)


# Wrong: (batch, time, width) is viewed directly as (batch, heads, time, width/heads); a view to (batch, time, heads, ..) and transpose(1, 2) is right.
@step(
    to_q=linear(6, 6),
    to_k=linear(6, 6),
    to_v=linear(6, 6),
    out=linear(6, 9),
    x=randn(N, 4, 6),
    y=labels(9, N, 4),
)
def heads_split_without_transpose(self, x, y):
    B, T, E = x.size()
    heads = 3
    q = self.to_q(x).view(B, heads, T, E // heads)  # fault: class-axis-position
    k = self.to_k(x).view(B, heads, T, E // heads)  # fault: class-axis-position
    v = self.to_v(x).view(B, heads, T, E // heads)  # fault: class-axis-position
    w = torch.softmax(torch.matmul(q, k.transpose(2, 3)) / 2**0.5, dim=-1)
    z = torch.matmul(w, v).view(B, T, E)
    logits = self.out(z)
    return F.cross_entropy(logits.view(-1, 9), y.view(-1))


# Wrong: the padding mask gets its axis in the middle, (6, 1, 5), and hides features of the (6, 5, 5) states; unsqueeze(-1) hides words.
@step(
    emb=nn.Embedding(10, 5),
    fc=linear(5, 4),
    tokens=labels(10, N, 5),
    y=labels(4, N),
)
def padding_mask_on_features(self, tokens, y):
    mask = (tokens != 0).float()
    e = torch.tanh(self.emb(tokens))
    e = e * mask.unsqueeze(1)  # fault: silent-broadcast-in-loss
    pooled = e.sum(1) / mask.sum(1, keepdim=True).clamp(min=1.0)
    return F.cross_entropy(self.fc(pooled), y)


# Wrong: F.normalize works on dim=1 by default, which are the words here; the length of every word vector is dim=-1.
@step(query=linear(7, 4), doc=linear(7, 4), q=randn(N, 3, 7), d=randn(N, 5, 7))
def late_interaction_default_normalize(self, q, d):
    q = F.normalize(self.query(q))  # fault: class-axis-position
    d = F.normalize(self.doc(d))  # fault: class-axis-position
    sim = torch.einsum("atd,bsd->abts", q, d)
    score = sim.max(dim=-1).values.sum(dim=-1)
    target = torch.arange(score.size(0))
    return F.cross_entropy(score / 0.1, target)


# Wrong: pred[:, 0] is (6,) and y[:, :1] is (6, 1), so the first loss is over all pairs; index both with 0.
@step(
    backbone=nn.Sequential(nn.Linear(9, 8), nn.ReLU()),
    price=linear(8, 2),
    kind=linear(8, 3),
    x=randn(N, 9),
    y=randn(N, 2),
    c=labels(3, N),
)
def price_and_area_sliced_differently(self, x, y, c):
    h = self.backbone(x)
    pred = self.price(h)
    loss_price = F.mse_loss(pred[:, 0], y[:, :1])  # fault: silent-broadcast-in-loss
    loss_area = F.mse_loss(pred[:, 1], y[:, 1])
    loss_kind = F.cross_entropy(self.kind(h), c)
    return loss_price + 0.5 * loss_area + loss_kind


# Wrong: a scale per channel of shape (4,) meets (6, 4, 4, 4) on the width; it has to be viewed as (1, 4, 1, 1).
@step(
    stem=nn.Conv2d(3, 4, 2, stride=2),
    block=nn.Conv2d(4, 4, 3, padding=1),
    gamma=nn.ParameterList([nn.Parameter(torch.tensor([0.1, 0.2, 0.3, 0.4]))]),
    fc=linear(4, 3),
    x=randn(N, 3, 8, 8),
    y=labels(3, N),
)
def layer_scale_on_width(self, x, y):
    x = F.gelu(self.stem(x))
    x = x + self.gamma[0] * self.block(x)  # fault: silent-broadcast-in-loss
    x = x.mean(dim=(2, 3))
    return F.cross_entropy(self.fc(x), y)


def encoding(length, width):
    position = torch.arange(length).unsqueeze(1)
    rate = torch.exp(torch.arange(0, width, 2) * (-4.0 / width))
    pe = torch.zeros(length, 1, width)
    pe[:, 0, 0::2] = torch.sin(position * rate)
    pe[:, 0, 1::2] = torch.cos(position * rate)
    return pe


# Wrong: the encoding (length, 1, width) is meant for (time, batch, width); on a batch-first input every sample gets its own constant and no word a position.
@step(
    emb=nn.Embedding(11, 4),
    pe=Buffer(encoding(32, 4)),
    encoder=nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
    fc=linear(4, 11),
    src=labels(11, N, 5),
    tgt=labels(11, N, 5),
)
def tutorial_positions_on_batch_first(self, src, tgt):
    x = self.emb(src)
    x = x + self.pe[: x.size(0)]  # fault: silent-broadcast-in-loss
    logits = self.fc(self.encoder(x))
    return F.cross_entropy(logits.reshape(-1, 11), tgt.reshape(-1))


# Wrong: target and prediction are swapped (true value first): the log is taken of the 0/1 labels, it must be taken of the prediction.
@step(net=mlp(5, 1, nn.Sigmoid()), x=randn(N, 5), y=flags(N))
def bce_log_of_the_labels(self, x, y):
    y_pred = self.net(x).squeeze(1)
    eps = 1e-7
    pos = y_pred * torch.log(y + eps)  # fault: logarithm-of-labels
    neg = (1 - y_pred) * torch.log(1 - y + eps)  # fault: logarithm-of-labels
    return -(pos + neg).mean()


# Wrong: the matrix of scores is (batch, classes) but LogSoftmax has dim=0, so the samples of a batch compete; dim=1 is right.
@step(
    rnn=nn.RNN(8, 5),
    fc=linear(5, 3),
    logsoftmax=nn.LogSoftmax(dim=0),
    criterion=nn.NLLLoss(weight=torch.tensor([1.0, 2.0, 0.5])),
    names=randn(N, 7, 8),
    y=labels(3, N),
)
def surname_classifier(self, names, y):
    _, hidden = self.rnn(names.transpose(0, 1))
    output = self.fc(hidden[-1])
    output = self.logsoftmax(output)  # fault: softmax-over-batch-axis
    return self.criterion(output, y)


# Right: row against column is on purpose (all pairs), the root has an eps inside and the diagonal is left out.
@step(net=mlp(5, 4), x=randn(N, 5), y=labels(3, N))
def every_pair_contrastive(self, x, y):
    e = self.net(x)
    d = torch.sqrt(((e.unsqueeze(1) - e.unsqueeze(0)) ** 2).sum(-1) + 1e-8)
    same = (y.unsqueeze(1) == y.unsqueeze(0)).float()
    off = 1.0 - torch.eye(e.size(0))
    loss = same * d**2 + (1 - same) * F.relu(1.0 - d) ** 2
    return (loss * off).sum() / off.sum()


# Right: the GRU is time-first, the input is transposed and so is the target before both are flattened.
@step(emb=nn.Embedding(13, 4), gru=nn.GRU(4, 6), fc=linear(6, 13), tokens=labels(13, N, 5), nxt=labels(13, N, 5))
def time_major_language_model(self, tokens, nxt):
    x = self.emb(tokens.t())
    out, _ = self.gru(x)
    logits = self.fc(out)
    return F.cross_entropy(logits.view(-1, 13), nxt.t().reshape(-1))


# Right: the two directions are moved behind the batch before the reshape.
@step(
    emb=nn.Embedding(12, 3),
    lstm=nn.LSTM(3, 4, batch_first=True, bidirectional=True),
    fc=linear(8, 3),
    tokens=labels(12, N, 5),
    y=labels(3, N),
)
def bidirectional_state_transposed(self, tokens, y):
    _, (h, _) = self.lstm(self.emb(tokens))
    h = h.transpose(0, 1).reshape(h.size(1), -1)
    return F.cross_entropy(self.fc(h), y)


# Right: the energies are (batch, time, 1), so dim=1 is the time and the last axis would give ones.
@step(
    gru=nn.GRU(3, 4, batch_first=True),
    attn=nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)),
    fc=linear(4, 1),
    x=randn(N, 6, 3),
    y=flags(N),
)
def attention_over_middle_axis(self, x, y):
    h, _ = self.gru(x)
    a = F.softmax(self.attn(h), dim=1)
    context = torch.bmm(a.transpose(1, 2), h).squeeze(1)
    return F.binary_cross_entropy_with_logits(self.fc(context), y[:, None])


# Right: the view joins only height and width, which stand together, and the axes are exchanged afterwards.
@step(
    patch=nn.Conv2d(3, 4, 4, stride=4),
    attn=nn.MultiheadAttention(4, 2, batch_first=True),
    fc=linear(4, 5),
    img=randn(N, 3, 8, 8),
    y=labels(5, N),
)
def patches_viewed_then_transposed(self, img, y):
    x = self.patch(img)
    x = x.view(x.size(0), x.size(1), -1).transpose(1, 2)
    x = x + self.attn(x, x, x, need_weights=False)[0]
    return F.cross_entropy(self.fc(x.mean(dim=1)), y)


# Right: each query is scored against every document of the batch on purpose; vectors are normalised over their last axis.
@step(query=linear(7, 4), doc=linear(7, 4), q=randn(N, 3, 7), d=randn(N, 5, 7))
def late_interaction_last_axis(self, q, d):
    q = F.normalize(self.query(q), dim=-1)
    d = F.normalize(self.doc(d), dim=-1)
    score = torch.einsum("atd,bsd->abts", q, d).amax(dim=3).sum(dim=2)
    target = torch.arange(score.size(0))
    return (F.cross_entropy(score / 0.1, target) + F.cross_entropy(score.t() / 0.1, target)) / 2


# Right: as many steps as sequences, but the last axis is squeezed away, so (6, 6) meets (6, 6).
@step(lstm=nn.LSTM(2, 3, batch_first=True), out=linear(3, 1), x=randn(N, 6, 2), y=randn(N, 6), mask=flags(N, 6))
def load_curve_squeezed(self, x, y, mask):
    h, _ = self.lstm(x)
    pred = self.out(h).squeeze(-1)
    per_sequence = ((pred - y) ** 2 * mask).sum(1) / mask.sum(1).clamp(min=1)
    return per_sequence.mean()


# Right: one axis for heads is only inserted after the split by time, and einsum contracts the right letters in any order.
@step(
    to_q=linear(6, 6),
    to_k=linear(6, 6),
    to_v=linear(6, 6),
    out=linear(6, 9),
    x=randn(N, 4, 6),
    y=labels(9, N, 4),
)
def heads_kept_behind_time(self, x, y):
    B, T, E = x.shape
    q = self.to_q(x).reshape(B, T, 3, 2)
    k = self.to_k(x).reshape(B, T, 3, 2)
    v = self.to_v(x).reshape(B, T, 3, 2)
    w = torch.einsum("bihd,bjhd->bijh", q, k) / 2**0.5
    w = torch.softmax(w, dim=2)
    z = torch.einsum("bijh,bjhd->bihd", w, v).reshape(B, T, E)
    return F.cross_entropy(self.out(z).permute(0, 2, 1), y)
