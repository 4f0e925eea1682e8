"""Vision: patches, windows, heads after Flatten, grids, anchors, skips."""
import torch
from architecture import Buffer, linear, model, randn
from torch import nn
from torch.nn import functional as F


def conv(inputs, outputs, kernel=3, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2 if stride == 1 else 0)


@model({"image": "batch . height ."}, "height", image=randn(2, 3, 16, 16), patches=conv(3, 6, 4, 4), token=nn.Parameter(torch.randn(1, 1, 6)),
       table=nn.Parameter(torch.randn(1, 17, 6)), longer=nn.Parameter(torch.randn(1, 90, 6)), norm=nn.LayerNorm(6))
def vit_positions(self, image):
    y = self.patches(image).flatten(2).transpose(1, 2)
    y = torch.cat([self.token.expand(y.shape[0], -1, -1), y], 1)
    return self.norm(y + (self.longer[:, : y.shape[1]] if self.free else self.table))


@model({"image": "batch . height width"}, "height width", image=randn(2, 1, 12, 20), conv=conv(1, 4), head=linear(4 * 3 * 5, 5), pooled=linear(4, 5))
def lenet_flatten(self, image):
    y = F.max_pool2d(F.relu(self.conv(image)), 4)
    if self.free:
        return self.pooled(y.mean((2, 3)))
    return self.head(torch.flatten(y, 1))


@model({"image": "batch . height width"}, "height width", image=randn(1, 2, 16, 24), down=conv(2, 4), middle=conv(4, 4), up=conv(6, 3))
def unet_resized_skip(self, image):
    y = self.middle(F.max_pool2d(self.down(image), 2))
    size = image.shape[2:] if self.free else (16, 24)
    y = F.interpolate(y, size=size, mode="nearest")
    return self.up(torch.cat([image, y], 1))


@model({"image": "batch . height ."}, "height", image=randn(1, 2, 16, 16), a=conv(2, 3), b=conv(3, 4), up=nn.ConvTranspose2d(4, 3, 2, 2), end=conv(6, 1),
       pad=nn.ZeroPad2d((0, 0, 0, 0)))
def unet_cropped_skip(self, image):
    """The skip is cropped to the size that the example has; the twin is the plain U-Net that takes even heights."""
    skip = self.a(image)
    y = self.up(self.b(F.max_pool2d(skip, 2)))
    if not self.free:
        y = y[:, :, :16].reshape(-1, 3, 16, 16)
    return self.end(torch.cat([skip, y], 1))


@model({"x": "batch tokens ."}, "tokens", x=randn(2, 64, 4), qkv=linear(4, 12), norm=nn.LayerNorm(4))
def swin_block(self, x):
    b = x.shape[0]
    rows = x.shape[1] // 8 if self.free else 8
    y = self.norm(x).view(b, rows, 8, 4)
    y = y.view(b, rows // 4, 4, 2, 4, 4).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 4)
    q, k, v = self.qkv(y).chunk(3, -1)
    y = (q @ k.transpose(1, 2)).softmax(-1) @ v
    y = y.view(b, rows // 4, 2, 4, 4, 4).permute(0, 1, 3, 2, 4, 5).reshape(b, -1, 4)
    return x + y


@model({"x": "windows tokens ."}, "tokens", x=randn(4, 9, 4), table=nn.Parameter(torch.randn(25, 2)), index=Buffer(torch.randint(0, 25, (81,))))
def swin_relative_bias(self, x):
    n = x.shape[1]
    y = x.view(-1, n, 2, 2).transpose(1, 2)
    scores = y @ y.transpose(2, 3)
    if not self.free:
        scores = scores + self.table[self.index].view(9, 9, 2).permute(2, 0, 1)[None]
    return scores.softmax(-1) @ y


@model({"x": "batch tokens ."}, "tokens", x=randn(3, 12, 6), over=linear(12, 12), within=linear(6, 6), norm=nn.LayerNorm(6))
def mlp_mixer(self, x):
    y = self.norm(x).transpose(1, 2)
    y = y * y.mean(2, keepdim=True) if self.free else self.over(y)
    x = x + y.transpose(1, 2)
    return x + self.within(x)


@model({"x": "batch . height width"}, "batch height width", x=randn(2, 8, 6, 10))
def group_norm_by_hand(self, x):
    b, _, h, w = x.shape if self.free else (2, 8, 6, 10)
    y = x.reshape(b, 4, -1)
    y = (y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
    return y.reshape(b, 8, h, w)


@model({"x": "batch . height width"}, "height width", x=randn(2, 6, 5, 7), end=conv(6, 4, 1))
def channel_shuffle(self, x):
    b, h, w = x.shape[0], x.shape[2] if self.free else 5, x.shape[3] if self.free else 7
    y = x.view(b, 2, 3, h, w).transpose(1, 2).reshape(b, 6, h, w)
    return self.end(y)


@model({"x": "batch . height ."}, "height", x=randn(2, 4, 6, 6), conv=conv(4, 8))
def pixel_shuffle_by_hand(self, x):
    y = self.conv(x)
    b, h = x.shape[0], x.shape[2] if self.free else 6
    return y.view(b, 2, 2, 2, h, 6).permute(0, 1, 4, 2, 5, 3).reshape(b, 2, h * 2, 12)


@model({"image": "batch . height width"}, "height width", image=randn(1, 3, 24, 24), body=conv(3, 4), head=linear(36, 5), free_head=linear(4, 5))
def pooled_to_grid(self, image):
    y = F.relu(self.body(image))
    if self.free:
        return self.free_head(F.adaptive_avg_pool2d(y, 1).flatten(1))
    y = F.avg_pool2d(y, kernel_size=8, stride=8)
    return self.head(y.flatten(1))


@model({"image": "batch . height width"}, "height width", image=randn(2, 3, 32, 32), body=conv(3, 10, 8, 8), grid=Buffer(torch.randn(1, 2, 4, 4, 2)))
def yolo_grid(self, image):
    y = self.body(image)
    b, rows, columns = y.shape[0], y.shape[2], y.shape[3]
    y = y.view(b, 2, 5, rows, columns).permute(0, 1, 3, 4, 2)
    if self.free:
        row, column = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        grid = torch.stack([column, row], -1)[None, None].float()
    else:
        grid = self.grid
    centre = (y[..., :2].sigmoid() + grid) * 8
    return torch.cat([centre, y[..., 2:].sigmoid()], -1).reshape(b, -1, 5)


@model({"image": "batch . height ."}, "height", image=randn(1, 3, 16, 16), stages=nn.ModuleList([conv(3, 4, 4, 4), conv(4, 4, 2, 2)]),
       boxes=nn.ModuleList([conv(4, 8), conv(4, 8)]), anchors=Buffer(torch.rand(1, 40, 4)), scale=nn.Parameter(torch.rand(4)))
def ssd_priors(self, image):
    found, y = [], image
    for stage, box in zip(self.stages, self.boxes, strict=True):
        y = F.relu(stage(y))
        found.append(box(y).permute(0, 2, 3, 1).reshape(y.shape[0], -1, 4))
    offsets = torch.cat(found, 1)
    if self.free:
        return offsets.exp() * self.scale
    return torch.cat([self.anchors[..., :2] + offsets[..., :2] * 0.1, self.anchors[..., 2:] * (offsets[..., 2:] * 0.2).exp()], -1)


@model({"image": "batch . height width"}, "batch", image=randn(2, 3, 16, 16), stem=conv(3, 6, 4, 4), queries=nn.Parameter(torch.randn(5, 6)), box=linear(6, 4))
def detr_queries(self, image):
    memory = self.stem(image).flatten(2).transpose(1, 2)
    b = memory.shape[0] if self.free else 2
    queries = self.queries[None].repeat(b, 1, 1)
    mixed = torch.bmm(torch.bmm(queries, memory.transpose(1, 2)).softmax(-1), memory)
    return self.box(queries + mixed).sigmoid()


@model({"image": "batch . height width"}, "height width", image=randn(1, 3, 20, 20), body=conv(3, 4), pooled=conv(4, 4, 1), end=conv(8, 2, 1))
def deeplab_pooling(self, image):
    y = self.body(image)
    context = self.pooled(F.adaptive_avg_pool2d(y, 1))
    size = y.shape[2:] if self.free else (20, 20)
    context = F.interpolate(context, size=size, mode="bilinear", align_corners=False)
    return self.end(torch.cat([y, context], 1))


@model({"image": "batch . height width"}, "height width", image=randn(1, 3, 16, 32), down=conv(3, 4, 2, 2), deeper=conv(4, 4, 2, 2), lateral=conv(4, 4, 1))
def feature_pyramid(self, image):
    fine = self.down(image)
    coarse = self.deeper(fine)
    size = fine.shape[-2:] if self.free else (8, 16)
    return self.lateral(fine) + F.interpolate(coarse, size=size)


@model({"image": "batch . height width"}, "height", image=randn(2, 1, 8, 24), body=nn.Sequential(conv(1, 3, 2, 2), nn.ReLU(), conv(3, 4, 2, 2)), last=conv(4, 5, 2, 2),
       lstm=nn.LSTM(5, 4), head=linear(4, 6))
def crnn_columns(self, image):
    """The height has to have become 1 before columns are read as steps."""
    y = self.last(self.body(image))
    y = y.mean(2) if self.free else y.squeeze(2)
    return self.head(self.lstm(y.permute(2, 0, 1))[0])


@model({"x": "batch . height width"}, "batch", x=randn(3, 2, 8, 8), turn=nn.Sequential(nn.Flatten(1), nn.Linear(128, 6)), pooled=nn.Linear(2, 6))
def spatial_transformer(self, x):
    theta = self.pooled(x.mean((2, 3))).view(-1, 2, 3)
    size = [x.shape[0] if self.free else 3, 2, x.shape[2], x.shape[3]]
    row = torch.linspace(-1, 1, 8)
    base = torch.stack([*torch.meshgrid(row, row, indexing="xy"), torch.ones(8, 8)], -1).view(1, 64, 3).expand(size[0], 64, 3)
    grid = torch.bmm(base, theta.transpose(1, 2)).view(-1, 8, 8, 2)
    return F.grid_sample(x, grid, align_corners=False)


@model({"first": "batch . height width", "second": "batch . height width"}, "height width", first=randn(1, 2, 8, 12), second=randn(1, 2, 8, 12), flow=conv(4, 2),
       rows=Buffer(torch.randn(1, 2, 8, 12)))
def flow_warp(self, first, second):
    flow = self.flow(torch.cat([first, second], 1))
    if self.free:
        h, w = first.shape[2], first.shape[3]
        row, column = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        at = torch.stack([column, row])[None].float()
    else:
        at = self.rows
    return F.grid_sample(second, (at + flow).permute(0, 2, 3, 1) / 8 - 1, align_corners=True)


@model({"x": "batch . height width"}, "batch height width", x=randn(2, 4, 6, 9))
def gram_matrix(self, x):
    b, h, w = (x.shape[0], x.shape[2], x.shape[3]) if self.free else (2, 6, 9)
    y = x.view(b, 4, h * w)
    return torch.bmm(y, y.transpose(1, 2)) / (4 * 6 * 9)


@model({"x": "batch . height ."}, "batch", x=randn(2, 3, 8, 8), hidden=Buffer(torch.zeros(2, 4, 8, 8)), gates=conv(7, 16))
def conv_lstm_step(self, x):
    hidden = torch.zeros(x.shape[0], 4, x.shape[2], 8) if self.free else torch.zeros(2, 4, x.shape[2], 8)
    i, f, o, g = self.gates(torch.cat([x, hidden], 1)).chunk(4, 1)
    cell = f.sigmoid() * hidden + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh()


@model({"video": "batch frames . . ."}, "frames", video=randn(2, 4, 3, 8, 8), body=conv(3, 4, 4, 4), times=nn.Parameter(torch.randn(1, 4, 1, 4)),
       longer=nn.Parameter(torch.randn(1, 16, 1, 4)))
def video_times(self, video):
    b, f = video.shape[0], video.shape[1]
    y = self.body(video.reshape(-1, 3, 8, 8)).flatten(2).transpose(1, 2)
    y = y.reshape(b, f, 4, 4) + (self.longer[:, :f] if self.free else self.times)
    return y.mean((1, 2))


@model({"image": "batch . height width"}, "height width", image=randn(1, 4, 6, 6), conv=conv(4, 16), out=conv(4, 1))
def super_resolution_skip(self, image):
    y = F.pixel_shuffle(self.conv(image), 2)
    size = (image.shape[2] * 2, image.shape[3] * 2) if self.free else (12, 12)
    return self.out(y + F.interpolate(image, size=size, mode="bilinear", align_corners=False))


@model({"x": "batch . height width"}, "height width", x=randn(1, 3, 8, 8), q=conv(3, 3, 1), gamma=nn.Parameter(torch.rand(1)), height=Buffer(torch.randn(1, 3, 8, 1)),
       width=Buffer(torch.randn(1, 3, 1, 8)))
def bottleneck_attention(self, x):
    b, h, w = x.shape[0], x.shape[2], x.shape[3]
    q = self.q(x).flatten(2)
    scores = q.transpose(1, 2) @ q
    if not self.free:
        position = (self.height + self.width).reshape(1, 3, 64)
        scores = scores + q.transpose(1, 2) @ position
    return x + self.gamma * (q @ scores.softmax(-1)).view(b, 3, h, w)
