"""Looks for small models that cost much: cost_search.py SECONDS [--inputs N] [--seed N] [--jobs N] [--largest BYTES] [--found FOLDER] FOLDER...

Models of the folders are changed at random, above all repeated: nodes in a chain or beside each other, dims, attributes, inputs, functions that
call each other, bodies in bodies. Each one goes through a command as a process of its own, and what costs most lives on, for each command and
kind of model, to be changed again. The promise of SECURITY.md is what is looked for: a second of processor time for 64 KiB, and 64 MiB + 40 bytes a
byte of memory. `--largest` lets models grow beyond that, in which a byte more of memory for each byte is seen better; time is then held against
their size. An input that breaks it is left in `--found`, made smaller, with the command, and the exit code is 1. Measured is the whole process
in an ordinary build, since a sanitizer costs a factor that differs from place to place.
"""
import argparse
import base64
import contextlib
import hashlib
import multiprocessing
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import onnx
import onnx.printer

TOOL = str(pathlib.Path(os.environ["TENSORLINT_BINARY"]).resolve())
PROMISED_BYTES = 64 << 10
SECONDS = 1.0
MEMORY = 64 << 20
MEMORY_A_BYTE = 40
MOST_SHORTENINGS = 150
MOST_RESTARTS = 20
SECONDS_BETWEEN_REPORTS = 300
#: What follows runs may take more (SECURITY.md).
RUNTIME_MEMORY = 64 << 20

#: `{}` is the model, `{text}` the same as text, `{value}` what its last node gives; what a command would write goes to the folder of the run.
COMMANDS = (
    ("check", "{}"),
    ("check", "--format", "json", "{}"),
    ("check", "--placement", "runtime", "{}"),
    ("check", "--provider", "cuda", "--placement", "explicit", "{}"),
    ("show", "{}"),
    ("show", "--format", "json", "{}"),
    ("contract", "--format", "json", "{}"),
    ("fix", "--unsafe", "--diff", "{}"),
    ("fix", "--unsafe", "-o", "{folder}/fixed.onnx", "{}"),
    ("place", "{}"),
    ("why", "--depth", "9", "{}", "{value}"),
    ("check", "{text}"),
    ("contract", "{text}"),
    ("fix", "--unsafe", "--diff", "{text}"),
    ("fix", "--unsafe", "-o", "{folder}/fixed.onnxtxt", "{text}"),
)
EDGES = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 16, 64, 255, 1024, 65536, 2**31 - 1, 2**32, 2**40, 2**62, 2**63 - 1)


class Mutator:
    def __init__(self, seeds, chance, largest=PROMISED_BYTES):
        self.seeds = seeds
        self.chance = chance
        self.largest = largest
        self.fresh = 0

    def seed(self):
        model = onnx.ModelProto()
        model.ParseFromString(self.chance.choice(self.seeds))
        return model

    def changed(self, data):
        model = onnx.ModelProto()
        model.ParseFromString(data)
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            change = self.chance.choices(
                (self.repeat_nodes, self.repeat_anything, self.set_number, self.set_string, self.splice, self.nest, self.call, self.widen, self.deepen, self.set_extents),
                (6, 4, 3, 2, 3, 1, 1, 2, 1, 2),
            )[0]
            with contextlib.suppress(IndexError, ValueError, OverflowError):
                change(model)
        return model.SerializeToString()

    # ---- parts of a model

    def graphs(self, model):
        """Graphs and functions, bodies included."""
        found = [model.graph, *model.functions]
        for holder in found:
            for node in holder.node:
                for attribute in node.attribute:
                    if attribute.HasField("g"):
                        found.append(attribute.g)
                    found.extend(attribute.graphs)
        return found

    def graph(self, model):
        return self.chance.choice(self.graphs(model))

    def messages(self, message, depth=0):
        """Messages below one, with all of their kinds."""
        found = [message]
        if depth > 12:
            return found
        for field, value in message.ListFields():
            if field.type == field.TYPE_MESSAGE:
                for part in value if field.is_repeated else (value,):
                    found += self.messages(part, depth + 1)
        return found

    def new_name(self):
        self.fresh += 1
        return f"v{self.fresh}"

    def count(self, unit, left):
        most = max(1, left // max(unit, 4))
        return self.chance.choice((1, 2, 4, 16, 64, most // 2, most)) if most > 1 else 1

    def room(self, model):
        return self.largest - model.ByteSize()

    # ---- changes

    def repeat_nodes(self, model):
        """Some nodes once more and more: each copy reads what the one before has made, or all read the same."""
        graph = self.graph(model)
        start = self.chance.randrange(len(graph.node))
        block = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node[start : start + self.chance.choice((1, 1, 2, 3, 5, 8))]]
        made = [name for node in block for name in node.output if name]
        read = [name for node in block for name in node.input if name and name not in made]
        unit = sum(node.ByteSize() + 4 for node in block)
        is_chain = self.chance.random() < 0.6
        joined = self.chance.choice((0, 0, 1, 2))  # outside operands that the chain goes through
        carried = {}
        after = list(graph.node[start + len(block) :])
        del graph.node[start + len(block) :]
        last = made[-1:]
        for _ in range(min(self.count(unit, self.room(model)), self.largest // 10)):
            names = {name: self.new_name() for name in made}
            for node in block:
                copy = graph.node.add()
                copy.CopyFrom(node)
                copy.name = ""
                for i, name in enumerate(copy.input):
                    copy.input[i] = names.get(name, carried.get(name, name))
                for i, name in enumerate(copy.output):
                    copy.output[i] = names.get(name, name)
            if is_chain and read and made:
                for name in self.chance.sample(read, min(len(read), 1 + joined)):
                    carried[name] = names[self.chance.choice(made)]
            last = list(names.values())[-1:]
        graph.node.extend(after)
        if last and self.chance.random() < 0.5 and hasattr(graph, "output") and isinstance(graph, onnx.GraphProto):
            graph.output.add().name = last[0]

    def repeat_anything(self, model):
        holders = [(message, field) for message in self.messages(model) for field, _ in message.ListFields() if field.is_repeated]
        message, field = self.chance.choice(holders)
        values = getattr(message, field.name)
        value = self.chance.choice(list(values))
        if field.type == field.TYPE_MESSAGE:
            data = value.SerializeToString()
            renamed = hasattr(value, "name") and isinstance(value.name, str) and self.chance.random() < 0.7
            for _ in range(min(self.count(len(data) + 3, self.room(model)), self.largest // 10)):
                copy = values.add()
                copy.MergeFromString(data)
                if renamed:
                    copy.name = self.new_name()
        elif field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            values.extend([value] * min(self.count(len(value) + 2, self.room(model)), 20000))
        else:
            many = min(self.count(2, self.room(model)), 20000)
            values.extend([value] * many if self.chance.random() < 0.7 or not isinstance(value, int) else range(many))

    def set_number(self, model):
        places = []
        for message in self.messages(model):
            for field, _ in message.ListFields():
                if field.type in (field.TYPE_INT64, field.TYPE_INT32, field.TYPE_UINT64, field.TYPE_ENUM):
                    places.append((message, field))
        message, field = self.chance.choice(places)
        edge = self.chance.choice(EDGES) if self.chance.random() < 0.7 else self.chance.randrange(-8, 40)
        if field.is_repeated:
            values = getattr(message, field.name)
            values[self.chance.randrange(len(values))] = edge
        else:
            setattr(message, field.name, edge)

    def set_extents(self, model):
        """Extents of tensors and of declared types; a tensor then has no elements, or more than can be counted."""
        places = [message for message in self.messages(model) if isinstance(message, (onnx.TensorProto, onnx.TensorShapeProto.Dimension))]
        for place in self.chance.sample(places, min(len(places), self.chance.choice((1, 1, 2, 3)))):
            if isinstance(place, onnx.TensorShapeProto.Dimension):
                place.dim_value = self.chance.choice(EDGES)
            elif place.dims and self.chance.random() < 0.7:
                place.dims[self.chance.randrange(len(place.dims))] = self.chance.choice(EDGES)
            else:
                place.dims.append(self.chance.choice(EDGES))

    def set_string(self, model):
        places = [
            (message, field)
            for message in self.messages(model)
            for field, _ in message.ListFields()
            if field.type in (field.TYPE_STRING, field.TYPE_BYTES) and field.name != "raw_data"
        ]
        message, field = self.chance.choice(places)
        other, other_field = self.chance.choice(places)
        source = getattr(other, other_field.name)
        text = self.chance.choice(list(source)) if other_field.is_repeated else source
        if self.chance.random() < 0.15:
            text = text * min(self.count(len(text), self.room(model)), 30000)
        if field.type == field.TYPE_STRING and isinstance(text, bytes):
            text = text.decode(errors="replace")
        elif field.type == field.TYPE_BYTES and isinstance(text, str):
            text = text.encode()
        if field.is_repeated:
            values = getattr(message, field.name)
            values[self.chance.randrange(len(values))] = text
        else:
            setattr(message, field.name, text)

    def splice(self, model):
        """Nodes of another model read what is here."""
        other = self.seed()
        graph, source = self.graph(model), self.graph(other)
        here = [name for node in graph.node for name in node.output if name]
        here += [part.name if hasattr(part, "name") else part for part in graph.input]
        if isinstance(graph, onnx.GraphProto) and isinstance(source, onnx.GraphProto):
            known = {tensor.name for tensor in graph.initializer}
            graph.initializer.extend(tensor for tensor in source.initializer if tensor.name not in known)
        start = self.chance.randrange(len(source.node))
        names = {}
        for node in source.node[start : start + self.chance.choice((1, 2, 4, 16))]:
            copy = graph.node.add()
            copy.CopyFrom(node)
            for i, name in enumerate(copy.input):
                if name in names:
                    copy.input[i] = names[name]
                elif here and self.chance.random() < 0.7:
                    copy.input[i] = self.chance.choice(here)
            for i, name in enumerate(copy.output):
                if name:
                    copy.output[i] = names[name] = self.new_name()
        have = {entry.domain for entry in model.opset_import}
        model.opset_import.extend(entry for entry in other.opset_import if entry.domain not in have)
        known_functions = {(one.domain, one.name) for one in model.functions}
        model.functions.extend(one for one in other.functions if (one.domain, one.name) not in known_functions)

    def nest(self, model):
        """A graph's nodes go into the body of a loop or a branch, some levels deep."""
        graph = self.graph(model)
        for _ in range(self.chance.choice((1, 1, 2, 5, 20, 60))):
            if self.room(model) < 200:
                return
            nodes = list(graph.node)
            made = [name for node in nodes for name in node.output if name]
            body = onnx.GraphProto(name=self.new_name())
            body.node.extend(nodes)
            condition = self.new_name()
            value = onnx.helper.make_tensor("c", onnx.TensorProto.BOOL, [], [True])
            del graph.node[:]
            graph.node.append(onnx.helper.make_node("Constant", [], [condition], value=value))
            if self.chance.random() < 0.5:
                body.output.extend(onnx.ValueInfoProto(name=name) for name in made[-2:])
                graph.node.append(onnx.helper.make_node("If", [condition], made[-2:], then_branch=body, else_branch=body))
            else:
                body.input.extend(onnx.ValueInfoProto(name=self.new_name()) for _ in range(2))
                body.output.extend(onnx.ValueInfoProto(name=name) for name in (body.input[1].name, *made[-1:]))
                graph.node.append(onnx.helper.make_node("Loop", ["", condition], made[-1:], body=body))

    def call(self, model):
        """Nodes become a function, which others call twice each."""
        graph = self.graph(model)
        start = self.chance.randrange(len(graph.node))
        block = list(graph.node[start : start + self.chance.choice((1, 2, 4, 8))])
        made = [name for node in block for name in node.output if name]
        read = list(dict.fromkeys(name for node in block for name in node.input if name and name not in made))[:8]
        inner = self.new_name()
        function = model.functions.add()
        function.name, function.domain = inner, "costs"
        function.input.extend(read)
        function.output.append(made[-1])
        function.node.extend(block)
        function.opset_import.extend(model.opset_import)
        for _ in range(self.chance.choice((0, 1, 3, 10, 30, 100))):
            if self.room(model) < 300:
                break
            outer = model.functions.add()
            outer.name, outer.domain = self.new_name(), "costs"
            outer.input.extend(read)
            outer.output.append("r1")
            outer.opset_import.extend(model.opset_import)
            first, second = outer.node.add(), outer.node.add()
            for node, result in ((first, "r0"), (second, "r1")):
                node.op_type, node.domain = inner, "costs"
                node.input.extend(read)
                node.output.append(result)
            if read:
                second.input[self.chance.randrange(len(read))] = "r0"
            inner = outer.name
        user = graph.node.add()
        user.op_type, user.domain = inner, "costs"
        user.input.extend(read)
        user.output.append(self.new_name())
        for owner in (model, *model.functions):
            if all(entry.domain != "costs" for entry in owner.opset_import):
                owner.opset_import.add(domain="costs", version=1)

    def widen(self, model):
        """A node gets many operands or results."""
        graph = self.graph(model)
        node = self.chance.choice(graph.node)
        many = min(self.count(4, self.room(model)), 8000)
        if self.chance.random() < 0.6:
            names = [name for other in graph.node for name in other.output if name] or [""]
            node.input.extend(self.chance.choice(names) for _ in range(many))
        else:
            node.output.extend(self.new_name() for _ in range(many))

    def deepen(self, model):
        """Inputs get more axes, named or not."""
        graph = self.graph(model)
        if not isinstance(graph, onnx.GraphProto):
            return
        dims = self.chance.choice(graph.input).type.tensor_type.shape.dim
        name = self.chance.choice(("N", "", "", None))
        for i in range(self.chance.choice((1, 2, 8, 31, 60))):
            dim = dims.add()
            if name is None:
                dim.dim_param = f"s{i}"
            elif name:
                dim.dim_param = name
            else:
                dim.dim_value = self.chance.choice((1, 2, 3, 2**20))


class Cost:
    def __init__(self, seconds, memory, allowed, size=0):
        self.seconds = seconds
        self.memory = memory
        self.of_time = seconds / (SECONDS * max(1, size / PROMISED_BYTES))
        self.of_memory = memory / allowed

    @property
    def share(self):
        return max(self.of_time, self.of_memory)


#: wait4 never says less of a child's memory than its parent had when it was started: this parent is small. The limits are the child's alone: the
#: processor time of thousands of starts would count against the parent's own.
STARTER = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
quiet = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
for line in sys.stdin:
    words = line.rstrip("\\n").split("\\t")
    child = os.posix_spawn(words[0], words, os.environ, file_actions=quiet)
    resource.prlimit(child, resource.RLIMIT_CPU, (10, 10))
    resource.prlimit(child, resource.RLIMIT_AS, (4 << 30, 4 << 30))
    _, status, used = os.wait4(child, 0)
    print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss << 10, flush=True)
"""


class StarterError(Exception):
    """A starter that died more often than is tolerated."""


class Starter:
    """Runs commands, one after the other, and says what each one took. A process for that which died is started anew, some times."""

    def __init__(self, folder):
        self.folder = folder
        self.restarts = 0
        self.seconds = 0.0
        self.start()

    def start(self):
        self.process = subprocess.Popen([sys.executable, "-S", "-c", STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.folder)

    def run(self, words):
        while True:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write("\t".join(words) + "\n")
                self.process.stdin.flush()
                answer = self.process.stdout.readline().split()
                if len(answer) == 3:
                    self.seconds += float(answer[1])
                    return int(answer[0]), float(answer[1]), int(answer[2])
            self.close()
            if self.restarts == MOST_RESTARTS:
                raise StarterError(f"the process that runs the commands died {MOST_RESTARTS + 1} times, at last with {self.process.returncode} on {words}")
            self.restarts += 1
            print(f"the process that runs the commands died with {self.process.returncode} on {words} and is started anew", flush=True)
            self.start()

    def close(self):
        with contextlib.suppress(BrokenPipeError):  # what is left of a line for a process that died
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def last_value(model):
    """What the last node gives; a name that no model has where it gives nothing that can be named in a line."""
    names = [name for node in model.graph.node[-1:] for name in node.output]
    return next((name for name in names if name and name.isprintable()), "?")


def words_of(data, command, folder, largest=PROMISED_BYTES):
    """The words of the command, with its files in place, and the bytes of the model there; nothing where it cannot be told as text, or is too large so."""
    path = os.path.join(folder, "m.onnx")
    if "{text}" in command:
        path += "txt"
        try:
            data = onnx.printer.to_text(onnx.ModelProto.FromString(data)).encode()
        except Exception:  # the printer raises errors of many classes for changed models, some of them not RuntimeError
            return None, 0
        if len(data) > largest:
            return None, 0
    with open(path, "wb") as file:
        file.write(data)
    value = last_value(onnx.ModelProto.FromString(data)) if "{value}" in command else ""
    places = {"{}": path, "{text}": path, "{value}": value}
    return [places.get(word, word.replace("{folder}", folder)) for word in command], len(data)


def measure(data, command, starter, largest=PROMISED_BYTES):
    """The cost of a command, and how it ended where that is none of its exit codes."""
    words, size = words_of(data, command, starter.folder, largest)
    if words is None:
        return Cost(0, 0, 1), ""
    code, seconds, memory = starter.run([TOOL, *words])
    allowed = MEMORY + MEMORY_A_BYTE * size + (RUNTIME_MEMORY if "runtime" in command or "place" in command else 0)
    return Cost(seconds, memory, allowed, size), "" if code in (0, 1, 2) else f"ends with {code}"


def breaks(data, command, starter, largest=PROMISED_BYTES):
    """Measured again, since another process may have disturbed the first measurement."""
    costs = [measure(data, command, starter, largest) for _ in range(3)]
    return all(end or cost.share > 1 for cost, end in costs)


def kind(data):
    model = onnx.ModelProto()
    model.ParseFromString(data)
    counts: dict[str, int] = {}
    for holder in (model.graph, *model.functions):
        for node in holder.node:
            counts[node.op_type] = counts.get(node.op_type, 0) + 1
    most = sorted(counts, key=lambda name: (-counts[name], name))[:2]
    return " ".join(name if onnx.defs.has(name) else "other" for name in most)


def smaller(data, command, starter, largest=PROMISED_BYTES):
    """The input without the nodes, functions and values that it does not need to break the promise, as far as that is soon found."""
    left = MOST_SHORTENINGS
    for part in ("functions", "node", "initializer", "value_info", "input", "output"):
        step = 1 << 30
        while step >= 1:
            model = onnx.ModelProto.FromString(data)
            values = model.functions if part == "functions" else getattr(model.graph, part)
            step = min(step // 2, len(values) // 2)
            if step == 0:
                break
            at = 0
            while at < len(values) and left > 0:
                left -= 1
                model = onnx.ModelProto.FromString(data)
                values = model.functions if part == "functions" else getattr(model.graph, part)
                del values[at : at + step]
                shorter = model.SerializeToString()
                cost, end = measure(shorter, command, starter, largest)
                if end or cost.share > 1.2:
                    data = shorter
                else:
                    at += step
    return data


class Population:
    """For each command and kind of model the dearest one, in time and in memory."""

    def __init__(self, chance):
        self.chance = chance
        self.best: dict[tuple[int, str, str], tuple[float, bytes]] = {}

    def offer(self, command, cost, data):
        for what, share in (("time", cost.of_time), ("memory", cost.of_memory)):
            key = (command, what, kind(data))
            if key not in self.best or share > self.best[key][0] * 1.02:
                self.best[key] = (share, data)

    def pick(self):
        """One of the dearest as often as any of the rest."""
        ranked = sorted(self.best.items(), key=lambda item: -item[1][0])
        chosen = ranked[: max(8, len(ranked) // 16)] if self.chance.random() < 0.6 else ranked
        (number, _, _), (_, data) = self.chance.choice(chosen)
        return number, data


class Search:
    """One job: its inputs, and what it has found."""

    def __init__(self, number, arguments, seeds, starter):
        self.number = number
        self.arguments = arguments
        self.seeds = seeds
        self.starter = starter
        self.chance = random.Random(f"{arguments.seed}/{number}")
        self.mutator, self.population = Mutator(seeds, self.chance, arguments.largest), Population(self.chance)
        self.runs = 0
        self.found: list[str] = []
        self.known: set[tuple[int, str]] = set()

    def run(self):
        end = time.monotonic() + self.arguments.seconds
        next_report = time.monotonic() + SECONDS_BETWEEN_REPORTS
        while (now := time.monotonic()) < end and self.runs != self.arguments.inputs:
            if now >= next_report:
                next_report = now + SECONDS_BETWEEN_REPORTS
                self.report_progress()
            self.try_one()

    def report_progress(self):
        dearest = "".join(f"; {share:.2f} of the promised {what}" for share, what in self.dearest()[:2])
        seconds = f"{self.starter.seconds:.0f} s of processor time"
        print(f"job {self.number}: {self.runs} inputs, {len(self.found)} break the promise, {seconds}{dearest}", flush=True)

    def try_one(self):
        chance, starter = self.chance, self.starter
        if not self.population.best or chance.random() < 0.15:
            command, data = chance.randrange(len(COMMANDS)), chance.choice(self.seeds)
        else:
            command, data = self.population.pick()
            if chance.random() < 0.2:
                command = chance.randrange(len(COMMANDS))
        data = self.mutator.changed(data)
        if len(data) > self.arguments.largest:
            return
        cost, ended = measure(data, COMMANDS[command], starter, self.arguments.largest)
        self.runs += 1
        if not ended and cost.share <= 1:
            self.population.offer(command, cost, data)
        elif (command, kind(data)) not in self.known and breaks(data, COMMANDS[command], starter, self.arguments.largest):
            # What breaks the promise has no children: they would only break it again.
            self.known.add((command, kind(data)))
            self.keep(command, data)

    def keep(self, command, data):
        name = hashlib.sha1(data).hexdigest()[:12]
        (self.arguments.found / f"{name}.onnx").write_bytes(data)
        data = smaller(data, COMMANDS[command], self.starter, self.arguments.largest)
        (self.arguments.found / f"{name}.onnx").write_bytes(data)
        cost, ended = measure(data, COMMANDS[command], self.starter, self.arguments.largest)
        words = " ".join(COMMANDS[command])
        self.found.append(f"{name}.onnx: {words}: {cost.seconds:.2f} s, {cost.memory >> 20} MiB, {len(data)} bytes {ended} {kind(data)}")
        print("found", self.found[-1], flush=True)
        print(f"again: base64 -d <<<{base64.b64encode(data).decode()} >{name}.onnx", flush=True)

    def dearest(self):
        best = self.population.best.items()
        return sorted(((share, f"{what}: {' '.join(COMMANDS[number])}: {of}") for (number, what, of), (share, _) in best), reverse=True)[:10]


def search(number, arguments, seeds, results):
    """What a job has found until it ended counts, however it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Starter(folder)) as starter:
        job = Search(number, arguments, seeds, starter)
        failure = ""
        try:
            job.run()
        except Exception:
            failure = f"job {number}: {traceback.format_exc()}"
        results.put((job.runs, job.found, job.dearest(), failure))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--inputs", type=int, help="stop after so many of each job")
    parser.add_argument("--largest", type=int, default=PROMISED_BYTES, help="bytes of the largest model")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--found", type=pathlib.Path, default=pathlib.Path("found"))
    arguments = parser.parse_args()
    seeds = []
    for folder in arguments.folders:
        for path in sorted(folder.rglob("*.onnx")):
            data = path.read_bytes()
            with contextlib.suppress(Exception):  # a seed that protobuf cannot read cannot be changed by its parts
                if len(data) <= arguments.largest and len(onnx.ModelProto.FromString(data).graph.node) > 0:
                    seeds.append(data)
    if not seeds:
        sys.exit("no models to begin with")
    if not os.access(TOOL, os.X_OK):
        sys.exit(f"there is no program {TOOL}")
    arguments.found.mkdir(parents=True, exist_ok=True)
    print(f"{len(seeds)} models, seed {arguments.seed}", flush=True)
    results: multiprocessing.Queue = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=search, args=(number, arguments, seeds, results)) for number in range(arguments.jobs)]
    for worker in workers:
        worker.start()
    outcomes = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    for share, what in sorted((entry for _, _, top, _ in outcomes for entry in top), reverse=True)[:10]:
        print(f"{share:.2f} of the promised {what}")
    found = [line for _, lines, _, _ in outcomes for line in lines]
    print(f"{sum(runs for runs, _, _, _ in outcomes)} inputs, {len(found)} break the promise")
    failures = [failure for _, _, _, failure in outcomes if failure]
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if found or failures else 0


if __name__ == "__main__":
    sys.exit(main())
