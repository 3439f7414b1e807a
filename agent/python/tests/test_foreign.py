"""Programs behave as without the agent, even if all functions of a real package are recorded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tachograph.recorder import MARK

from .packages import packages
from .server import PATIENCE_S, ROOT, ServerTest

FLASK = """
import inspect
from flask import Flask, render_template_string, request
from werkzeug.wrappers import Request
app = Flask(__name__)
@app.template_filter("shout")
def shout(text): return text.upper()
@app.route("/ads/<int:number>")
def ad(number):
    return render_template_string("{{ a|shout }} {{ n|tojson }}", a=request.args["a"], n=number)
with app.test_client() as client:
    for path in ("/ads/5?a=x", "/nowhere"):
        answer = client.get(path, headers={"Accept-Language": "de"})
        print(answer.status, answer.get_data(as_text=True)[:40])
computed = []
from werkzeug.utils import cached_property
class Once:
    @cached_property
    def value(self):
        computed.append(1)
        return 7
once = Once()
print(once.value, once.value, len(computed), type(vars(Once)["value"]).__name__)
request = Request.from_values("/x?y=1")
print(request.args["y"], request.accept_languages.best, request.is_json, type(inspect.getattr_static(Request, "args")).__name__)
app.jinja_env.filters["shout"]
"""
SYMPY = """
import sympy
def locally():
    sympy.var("x y")
    return sorted(name for name in globals() if name in "xy")
print(locally(), sympy.diff(sympy.sin(sympy.Symbol("x")) ** 2).subs("x", 0))
"""
OWN = """
import functools, inspect, logging, sys, warnings, collections
def deprecated(): warnings.warn("old", DeprecationWarning, stacklevel=2)
def deprecated_too(): warnings.warn("old", DeprecationWarning, 2)
def caller(): return sys._getframe(1).f_code.co_name
def of_stack(): return inspect.stack()[1].function
def back(): return inspect.currentframe().f_back.f_code.co_name
def pair(): return collections.namedtuple("Pair", "a b").__module__
def of_another():  # `warn` of a logger, not of `warnings`
    logging.getLogger("x").warn("told")
    return range(5)
def log(): logging.getLogger("x").warning("said", stacklevel=2)
def far(level=3): warnings.warn("old", DeprecationWarning, stacklevel=level)
def through(): far()
class Line(property): pass
class Fixed(staticmethod): pass
class Board:
    @Line
    def line(self): return "line"
    @Fixed
    def fixed(): return "fixed"
    @functools.cached_property
    def once(self): return "once"
    @property
    def plain(self): return "plain"
    def post(self): return "post"
    @classmethod
    def of(cls): return cls.__name__
"""
OWN_RUN = """
import logging, warnings
import lib
logging.basicConfig(format="%(funcName)s %(message)s")
warnings.simplefilter("always")
def here():
    lib.deprecated(); lib.deprecated_too(); lib.through(); lib.log(); lib.of_another()
    return lib.caller(), lib.of_stack(), lib.back(), lib.pair()
print(here())
board = lib.Board()
print(board.line, board.fixed(), board.once, board.plain, board.post(), board.of())
print({name: type(one).__name__ for name, one in vars(lib.Board).items() if not name.startswith("__")})
try: board.plain = 1
except AttributeError as e: print(e)
"""
# References to a module's functions that were made before the functions are changed.
MADE = """
import functools, types
def digest(n): return n + 1
class Signer:
    default = staticmethod(digest)
    def sign(self): return self.default(1)
    again = sign
TABLE, CALL = {"digest": digest}, functools.partial(digest, 2)
def made():
    def inner(): return digest(3)
    return inner
@types.coroutine
def step():
    return (yield digest(4))
async def steps(): return [one async for one in numbers()] + [await step()]
async def numbers():
    yield digest(5)
class Base:
    def __init__(self, a, *, b=2): self.b = a + b
class Below(Base):
    def __init__(self): super().__init__(1)
"""
MADE_RUN = """
import inspect, pickle
import lib
from lib import digest
print(lib.Signer.default is digest, lib.TABLE["digest"] is digest, lib.CALL.func is digest, lib.Signer.again is lib.Signer.sign)
print(pickle.loads(pickle.dumps(lib.TABLE))["digest"] is digest, pickle.loads(pickle.dumps(lib.Signer.default)) is digest)
print(lib.Signer().sign(), lib.TABLE["digest"](1), lib.CALL(), lib.made()(), lib.Below().b)
print(inspect.signature(lib.Base), inspect.signature(digest), lib.Base.__init__.__kwdefaults__, digest.__globals__ is vars(lib))
print(inspect.getsource(digest), digest.__code__.co_name, digest.__code__.co_firstlineno)
steps = lib.steps()
print(steps.send(None))
try: steps.send(7)
except StopIteration as stop: print(stop.value)
def deep(n):
    try: return deep(n + 1)
    except RecursionError: return n
print(deep(0) > 400)
"""
# Functions with parameters of all kinds. The program below passes to a function only the arguments that its code declares, as do
# the signals of Scrapy and the events of SQLAlchemy.
TAKEN = """
def none(): return "none"
def one(a): return a
def defaults(a, b=2, *, c=3): return a, b, c
def only(a, /, b, *, c): return a, b, c
def rest(a, *more, c=4): return a, more, c
def every(*a, **more): return a, sorted(more)
def words(words, track, known, call): return words, track, known, call
def captured(a, by, *, c=5):
    return (lambda: (a, by, c))()
def steps(a, *, c=6):
    yield a, c
async def later(a, c=7): return a, c
class Board:
    def post(self, a, c=8): return a, c
    def __mangled(self, __a): return __a
    mangled = __mangled
"""
TAKEN_RUN = """
import inspect
import lib
def told(function, **named):
    code, bound = function.__code__, int(hasattr(function, "__self__"))
    count = code.co_argcount + code.co_kwonlyargcount
    taken = {name: one for name, one in named.items() if code.co_flags & 8 or name in code.co_varnames[bound:count]}
    return function(**taken)
for name in ("none", "one", "defaults", "rest", "every", "captured"):
    function = getattr(lib, name)
    code = function.__code__
    kinds = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & 12
    print(name, told(function, a=1, by=2, c=3, d=4), kinds, inspect.signature(function), sorted(vars(function).keys() - {MARK}))
print(told(lib.Board().post, a=1, sender=2), lib.Board().mangled(5), lib.only(1, 2, c=3), lib.only(1, b=2, c=3), lib.words(1, 2, 3, 4))
print(list(told(lib.steps, a=1, x=2)), inspect.isgeneratorfunction(lib.steps), inspect.iscoroutinefunction(lib.later))
try: lib.later(a=1).send(None)
except StopIteration as stop: print(stop.value)
lib.defaults.__defaults__, lib.defaults.__kwdefaults__ = (20,), {"c": 30}
print(lib.defaults(1), lib.rest(1, 2, 3), lib.every(1, b=2, a=3))
for wrong in (lambda: lib.one(), lambda: lib.one(1, 2), lambda: lib.only(1, 2), lambda: lib.only(a=1, b=2, c=3), lambda: lib.one(b=1)):
    try: wrong()
    except TypeError as e: print(e)
""".replace("MARK", repr(MARK))
LAZY = """
import types
class Lazy:
    @property
    def __class__(self): raise RuntimeError("asked")
    def __getattribute__(self, name): raise RuntimeError("asked")
class Meta(type):
    @property
    def __module__(cls): raise RuntimeError("asked")
    @property
    def __dict__(cls): raise RuntimeError("asked")
class Module(types.ModuleType):
    @property
    def __dict__(self): raise RuntimeError("asked")
settings = Lazy()
class Asking(metaclass=Meta):
    def post(self): return "post"
module = Module("module")
def work(): return 7
"""
WARNING = """
import warnings
warnings.warn("old module", DeprecationWarning, stacklevel=2)
def work(): return 7
"""
WARNING_RUN = """
import sys, traceback, warnings
warnings.simplefilter("always")
import lib
for name in ("failing", "broken", "importing"):
    try: __import__(name)
    except Exception: print([(frame.filename.rsplit("/", 1)[-1], frame.name) for frame in traceback.extract_tb(sys.exc_info()[2])])
print(lib.work())
"""
# A script that calls its own functions while it runs, also through references that its decorators keep.
SCRIPT = """
import functools, inspect, pickle, sys, warnings
from flask import Flask
warnings.simplefilter("always")
app, TABLE = Flask(__name__), []
def keep(function):
    TABLE.append(function)
    return function
@keep
def post(n, *, b=2): return n + b
for _ in range(3): post(1); TABLE[0](1)
class Command:
    def __init__(self, function): self.function = function
    def __call__(self): return self.function()
@Command
def command(): return "command"
def logged(function):
    @functools.wraps(function)
    def around(*a): return function(*a)
    return around
@keep
@logged
def around(n): return n
@functools.lru_cache
def cached(n): return n
def through(): far()  # `far` is defined later
def far(level=3): warnings.warn("old", DeprecationWarning, stacklevel=level)
def caller(): return sys._getframe(1).f_code.co_name
class Base:
    def __init__(self): self.base = True
class Board(Base):
    def __init__(self): super().__init__()
    @property
    def size(self): return 1
    @size.setter
    def size(self, n): pass
    @keep
    def again(self): return caller()
async def numbers(): yield 1
async def steps(): return [n async for n in numbers()]
@app.get("/ads/<int:number>")
def ad(number): return str(number)
@app.get("/boom")
def boom(): raise ValueError("boom")
def work():
    through()
    return caller()
if __name__ == "__main__":
    print(type(command).__name__, command.function(), command(), TABLE[0] is post, TABLE[1] is around, TABLE[1](5))
    print(cached(1), cached(1), cached.cache_info(), inspect.signature(post), inspect.getsource(post), sorted(vars(around)))
    board = Board()
    board.size = 2
    print(board.size, board.base, TABLE[2](board), work(), pickle.loads(pickle.dumps(post)) is post, post.__code__.co_name)
    try: steps().send(None)
    except StopIteration as stop: print(stop.value)
    with app.test_client() as client: print(client.get("/ads/5").text, client.get("/boom").status_code)
""".replace("sorted(vars(around))", f"sorted(vars(around).keys() - {{{MARK!r}}})")
SCRIPT_COUNTS = {
    **{"post": 6, "around": 1, "cached": 1, "work": 1, "steps": 1, "ad": 1, "boom": 1, "logged": 1, "keep": 3},
    **{"Command.__init__": 1, "Command.__call__": 1, "Base.__init__": 1, "Board.__init__": 1, "Board.size": 2, "Board.again": 1},
}


class Foreign(ServerTest):
    def both(self, folder: str, include: str, *program: str) -> tuple[subprocess.CompletedProcess[str], dict[str, int]]:
        """Runs a program without the agent and with it. Standard output and exit status must be the same. Returns the run with
        the agent, and the number of recorded calls by operation."""
        runs = []
        for prefix in ((), ("-m", "tachograph", "run")):
            environment = self.environment(include=include)
            environment["PYTHONPATH"] = f"{ROOT}:{packages()}"
            command = [sys.executable, *prefix, *program]
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S * 2, check=False
            )
            runs.append(done)
        alone, watched = runs
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertEqual((watched.returncode, watched.stdout), (alone.returncode, alone.stdout), watched.stderr)
        return watched, self.server.counts(self.service)

    def program(self, **files: str) -> str:
        folder = self.folder()
        for name, text in files.items():
            (Path(folder) / f"{name}.py").write_text(text)
        return folder

    def test_all_of_flask_and_werkzeug(self) -> None:
        done, counts = self.both(self.program(app=FLASK), "flask..*,werkzeug..*", "app.py")
        self.assertTrue(done.stdout.startswith("200 OK X 5\n404 NOT FOUND"), done)
        self.assertGreater(counts["flask.app.Flask.wsgi_app"], 1)

    def test_sympy_defines_names_in_its_caller(self) -> None:
        done, counts = self.both(self.program(app=SYMPY), "sympy.core..*", "app.py")
        self.assertEqual(done.stdout, "['x', 'y'] 0\n")
        self.assertGreater(sum(counts.values()), 100)

    def test_subclasses_of_descriptors_and_functions_that_inspect_their_caller(self) -> None:
        done, counts = self.both(self.program(app=OWN_RUN, lib=OWN), "lib", "app.py")
        self.assertEqual(done.stdout.splitlines()[0], "('here', 'here', 'here', 'lib')")
        self.assertEqual(done.stderr.count("app.py:7: DeprecationWarning"), 3, done.stderr)
        self.assertIn("here said", done.stderr)
        left = "functions of lib that stay unchanged, since they read the frame of their caller: 8 (lib.deprecated, "
        self.assertEqual(done.stderr.count(left), 1, done.stderr)
        names = {"Board.plain": 1, "Board.post": 1, "Board.of": 1, "pair": 1, "of_another": 1}
        self.assertEqual(counts, {f"lib.{name}": count for name, count in names.items()})

    def test_references_to_functions_stay_equal(self) -> None:
        done, counts = self.both(self.program(app=MADE_RUN, lib=MADE), "lib", "app.py")
        self.assertEqual(done.stdout.splitlines()[:2], ["True True True True", "True True"])
        self.assertEqual(counts["lib.digest"], 6)
        self.assertEqual(counts["lib.Below.__init__"], 1)

    def test_functions_take_the_same_arguments(self) -> None:
        done, counts = self.both(self.program(app=TAKEN_RUN, lib=TAKEN), "lib", "app.py")
        self.assertIn("one() missing 1 required positional argument: 'a'", done.stdout)
        names = ("none", "one", "captured", "only", "words", "steps", "later", "Board.post", "Board._Board__mangled")
        self.assertLess({f"lib.{name}" for name in names if not name.startswith("Board._")}, counts.keys())
        self.assertEqual(counts["lib.defaults"], 2)

    def test_no_code_of_the_program_runs_during_inspection(self) -> None:
        run = "import sys, lib\nsys.modules['lazy'] = lib.module\nprint(lib.work(), lib.Asking().post())\n"
        done, counts = self.both(self.program(app=run, lib=LAZY), "lib,lazy", "app.py")
        self.assertNotIn("stays unchanged", done.stderr)
        self.assertEqual(counts, {"lib.work": 1, "lib.Asking.post": 1})

    def test_modules_that_warn_or_fail_while_they_are_imported(self) -> None:
        modules = {"failing": "def work(): 1 / 0\nwork()\n", "broken": "x =\n", "importing": "import failing\n"}
        folder = self.program(app=WARNING_RUN, lib=WARNING, **modules)
        done, counts = self.both(folder, "lib,broken,importing", "app.py")
        self.assertIn("app.py:4: DeprecationWarning: old module", done.stderr)
        self.assertEqual(counts, {"lib.work": 1})

    def test_functions_of_a_script_are_recorded_through_references(self) -> None:
        self.check_script("app.py")

    def test_functions_of_a_module_that_runs_as_main_are_recorded(self) -> None:
        self.check_script("-m", "app")

    def check_script(self, *program: str) -> None:
        folder = self.program(app=SCRIPT)
        done, counts = self.both(folder, "app", *program)
        self.assertEqual(done.stdout.splitlines()[0], "Command command command True True 5")
        self.assertIn(f"{folder}/app.py:46: DeprecationWarning: old", done.stderr)
        left = "functions of app that stay unchanged, since they read the frame of their caller: 3 (app.through, app.far, "
        self.assertEqual(done.stderr.count(left), 1, done.stderr)
        counts.pop("app.numbers")
        self.assertEqual(counts, {f"app.{name}": count for name, count in SCRIPT_COUNTS.items()})
