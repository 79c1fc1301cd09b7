"""What a jitdump's names say: function, kind, category, tier and place, for each producer.

SEEN holds names of the captures; of producers that no capture has (CoreCLR, Ruby, LuaJIT, Julia, Dart) names that their
sources write, and for CoreCLR some that .NET Core 3.1 wrote. SOURCES_SAY holds names that only samply's tests or the
producers' sources show. A name is compared as `function`, or with its place as `function @ file:line:column`, and as
`category kind`, with ` js` if it belongs into the JavaScript-only view, and its tier.
"""

import io
import struct
from collections.abc import Iterator
from functools import cache

import pytest
import zstandard
from conftest import shared
from hypothesis import given
from hypothesis import strategies as st

from traceferry.model import CATEGORY_COLORS
from traceferry.model.categories import IDLE
from traceferry.symbolication.jit_names import PATTERNS, Name, Producer, Tier, producer_of

Cases = dict[str, tuple[str, str]]

JS = "JavaScript function js"
WASM = "WebAssembly wasm js"
TIERS_JS = "/home/dev/sample/tiers.js"
TIERS_PM = "/home/dev/sample/pm2/tiers_pm.js"
PRIMORDIALS = "node:internal/per_context/primordials"
HOT_PY = "/home/dev/sample/py313-dwarf/../hot.py"

SEEN: dict[str, Cases] = {
    "V8": {
        "Eval:~ node:stream:1:1": ("(anonymous) @ node:stream:1:1", f"{JS}, Interpreter"),
        "JS:~ /home/dev/sample/tiers.js:13:63": (f"(anonymous) @ {TIERS_JS}:13:63", f"{JS}, Interpreter"),
        "JS:~get len /home/dev/sample/tiers.js:4:128": (f"get len @ {TIERS_JS}:4:128", f"{JS}, Interpreter"),
        "JS:~evaldFn :1:18": ("evaldFn @ :1:18", f"{JS}, Interpreter"),
        "JS:~ :1:20": ("(anonymous) @ :1:20", f"{JS}, Interpreter"),
        "Eval:~ :1:1": ("(anonymous) @ :1:1", f"{JS}, Interpreter"),
        "JS:^#priv /home/dev/sample/tiers.js:4:263": (f"#priv @ {TIERS_JS}:4:263", f"{JS}, Baseline"),
        "JS:^メソッド /home/dev/sample/tiers.js:7:18": (f"メソッド @ {TIERS_JS}:7:18", f"{JS}, Baseline"),
        "JS:^set removed node:internal/event_target:530:14": (
            "set removed @ node:internal/event_target:530:14", f"{JS}, Baseline",
        ),
        "JS:^get node:events:272:16": ("get @ node:events:272:16", f"{JS}, Baseline"),
        "JS:^Readable.on node:internal/streams/readable:1143:33": (
            "Readable.on @ node:internal/streams/readable:1143:33", f"{JS}, Baseline",
        ),
        "JS:+ :1:20": ("(anonymous) @ :1:20", f"{JS}, Maglev"),
        "JS:+'getNewKey node:internal/per_context/primordials:54:19": (
            f"getNewKey @ {PRIMORDIALS}:54:19", f"{JS}, Maglev (context specialized)",
        ),
        "JS:*matmul /home/dev/sample/tiers.js:10:16": (f"matmul @ {TIERS_JS}:10:16", f"{JS}, Turbofan"),
        "JS:*'evaldFn :1:18": ("evaldFn @ :1:18", f"{JS}, Turbofan (context specialized)"),
        "JS:wfib-1-liftoff": ("wfib (WASM:1)", f"{WASM}, Liftoff (wasm)"),
        "JS:wloop-3-turbofan": ("wloop (WASM:3)", f"{WASM}, Turbofan (wasm)"),
        "JS:wasm-to-js-<anonymous>-none": ("wasm-to-js", "JIT trampoline"),
        "Builtin:ArrayEveryLoopContinuation": ("ArrayEveryLoopContinuation", "JavaScript builtin, Builtin"),
        "BytecodeHandler:BitwiseXorSmi.Wide": ("BitwiseXorSmi.Wide", "JavaScript stub, Interpreter"),
        r"RegExp.> src: '(\w+)@(\w+)\.com' flags: 'g'": (r"/(\w+)@(\w+)\.com/g", "RegExp regexp"),
        "RegExp.> src: '^[A-Z][a-zA-Z0-9]+$' flags: ''": ("/^[A-Z][a-zA-Z0-9]+$/", "RegExp regexp"),
        # What samply's extensions were tried with: no engine wrote these.
        "JS:*<anonymous> /home/dev/sample/with space/data model.mjs:2:1": (
            "<anonymous> @ /home/dev/sample/with space/data model.mjs:2:1", f"{JS}, Turbofan",
        ),
        "JS:*get visitCell file:///home/dev/sample/mod/hash.js:53:1": (
            "get visitCell @ file:///home/dev/sample/mod/hash.js:53:1", f"{JS}, Turbofan",
        ),
        "get visitCell": ("get visitCell", "JIT function"),
    },
    "JavaScriptCore": {
        "JSC-Baseline: fib#BbF6aX": ("fib", f"{JS}, Baseline"),
        "JSC-Baseline: #DzRSc9": ("(anonymous)", f"{JS}, Baseline"),
        "JSC-DFG: #priv#ClfzAu": ("#priv", f"{JS}, DFG"),
        "JSC-FTL: メソッド#C2VrT7": ("メソッド", f"{JS}, FTL"),
        "JSC-WasmBBQ: mymod.wasm-function[wfib]#BPUKfC": ("mymod.wasm-function[wfib]", f"{WASM}, BBQ"),
        "JSC-WasmOMG: mymod.wasm-function[wloop]#A1XdvS": ("mymod.wasm-function[wloop]", f"{WASM}, OMG"),
        r"JSC-YarrJIT: /(\w+)@(\w+)\.com/g": (r"/(\w+)@(\w+)\.com/g", "RegExp regexp"),
        "JSC-InlineCache: GetById ProxyObjectLoad handler": ("GetById ProxyObjectLoad handler", "JIT inline cache, IC"),
        "JSC-Thunk: DefaultCall": ("DefaultCall", "JIT stub, Thunk"),
        "JSC-LLIntThunk: function for call": ("function for call", "JIT stub, LLIntThunk"),
        "JSC-ExtraCTIThunk: valueIsTruthy": ("valueIsTruthy", "JIT stub, ExtraCTIThunk"),
        "JSC-WasmThunk: JSToWasm": ("JSToWasm", "JIT stub, WasmThunk"),
        "JSC-DFGThunk: unspecified": ("unspecified", "JIT stub, DFGThunk"),
        "JSC-FTLThunk: unspecified": ("unspecified", "JIT stub, FTLThunk"),
        "JSC-DFGOSREntry: unspecified": ("unspecified", "JIT trampoline, DFGOSREntry"),
        "JSC-DFGOSRExit: unspecified": ("unspecified", "JIT trampoline, DFGOSRExit"),
        "JSC-FTLOSRExit: unspecified": ("unspecified", "JIT trampoline, FTLOSRExit"),
    },
    "SpiderMonkey": {
        "Interpreter: * (evaluate:1:1)": ("(anonymous) @ evaluate:1:1", f"{JS}, Interpreter"),
        "Interpreter: get [Symbol.species] (self-hosted:617:23)": (
            "get [Symbol.species] @ self-hosted:617:23", "JavaScript function, Interpreter",
        ),
        "BaselineInterpreter: anonymous (/home/dev/sample/pm2/tiers_pm.js line 16 > Function:1:1)": (
            f"anonymous @ {TIERS_PM} line 16 > Function:1:1", f"{JS}, BaselineInterpreter",
        ),
        "Baseline: * (/home/dev/sample/pm2/tiers_pm.js:19:8)": (f"(anonymous) @ {TIERS_PM}:19:8", f"{JS}, Baseline"),
        "Ion: get len (/home/dev/sample/pm2/tiers_pm.js:3:128)": (f"get len @ {TIERS_PM}:3:128", f"{JS}, Ion"),
        "Ion: mkClosure/< (/home/dev/sample/pm2/tiers_pm.js:4:25)": (f"mkClosure/< @ {TIERS_PM}:4:25", f"{JS}, Ion"),
        "Ion: evaldFn (/home/dev/sample/pm2/tiers_pm.js line 15 > eval:1:18)": (
            f"evaldFn @ {TIERS_PM} line 15 > eval:1:18", f"{JS}, Ion",
        ),
        r"Ion: \xFCn\xEFc\xF6d\xE9 (/home/dev/sample/pm2/tiers_pm.js:5:17)": (
            f"ünïcödé @ {TIERS_PM}:5:17", f"{JS}, Ion",
        ),
        r"Ion: \u30E1\u30BD\u30C3\u30C9 (/home/dev/sample/pm2/tiers_pm.js:6:18)": (
            f"メソッド @ {TIERS_PM}:6:18", f"{JS}, Ion",
        ),
        "BlinterpOp: InterpreterLoop": ("InterpreterLoop", "JavaScript stub, BlinterpOp"),
        "BaselineIC: Call.CallScripted": ("Call.CallScripted", "JIT inline cache, BaselineIC"),
        "BaselineICFallback: GetElemSuper": ("GetElemSuper", "JIT inline cache, BaselineICFallback"),
        "Trampoline: Arguments Rectifier (Trial Inlining)": (
            "Arguments Rectifier (Trial Inlining)", "JIT trampoline, Trampoline",
        ),
        "VMWrapper: ArgumentsSliceDense": ("ArgumentsSliceDense", "JIT trampoline, VMWrapper"),
        "RegExp": ("RegExp", "RegExp regexp"),
        "RegExpSearcherStub": ("RegExpSearcherStub", "JIT stub"),
        "RegExpExecMatchStub": ("RegExpExecMatchStub", "JIT stub"),
        "StringConcatStub": ("StringConcatStub", "JIT stub"),
        "DebugTrapHandler": ("DebugTrapHandler", "JIT stub"),
    },
    "HotSpot": {
        "LHot;collatz(J)J": ("Hot.collatz(long)", "Java function"),
        "Ljava/lang/Object;<init>()V": ("java.lang.Object.<init>()", "Java function"),
        "LHot;ünï(Ljava/util/List;)D": ("Hot.ünï(java.util.List)", "Java function"),
        "Ljava/lang/StringConcatHelper;prepend(J[BILjava/lang/String;)J": (
            "java.lang.StringConcatHelper.prepend(long, byte[], int, java.lang.String)", "Java function",
        ),
        "Ljava/util/ArrayList;grow(I)[Ljava/lang/Object;": ("java.util.ArrayList.grow(int)", "Java function"),
        "Ljava/util/TimSort;ensureCapacity(I)[Ljava/lang/Object;": (
            "java.util.TimSort.ensureCapacity(int)", "Java function",
        ),
        "Ljava/util/HashMap;afterNodeAccess(Ljava/util/HashMap$Node;)V": (
            "java.util.HashMap.afterNodeAccess(java.util.HashMap$Node)", "Java function",
        ),
        "LHot$$Lambda$2.0x00007f441c003220;test(I)Z": (
            "Hot$$Lambda$2.0x00007f441c003220.test(int)", "Java function",
        ),
        "I2C/C2I adapters(0xbb66)": ("I2C/C2I adapters(0xbb66)", "JIT stub"),
        "Interpreter": ("Interpreter", "Java stub, Interpreter"),
        "vtable stub": ("vtable stub", "JIT stub"),
        "StackOverflowError throw_exception": ("StackOverflowError throw_exception", "JIT stub"),
        "monitorenter Runtime1 stub": ("monitorenter Runtime1 stub", "JIT stub"),
    },
    "PHP": {
        r"TRACE-1$App\Jobs\fib$3": (r"App\Jobs\fib @ :3:0", "PHP function js, Tracing JIT"),
        r"TRACE-8$App\Jobs\Vec::__construct$4": (r"App\Jobs\Vec::__construct @ :4:0", "PHP function js, Tracing JIT"),
        r"TRACE-13$App\Jobs\{closure}$9": (r"App\Jobs\{closure} @ :9:0", "PHP function js, Tracing JIT"),
        "TRACE-9$/home/dev/sample/hot.php$9": (
            "{main} @ /home/dev/sample/hot.php:9:0", "PHP function js, Tracing JIT",
        ),
        "JIT$$leave_function": ("leave_function", "JIT stub"),
        "jit$$trace_exit_0": ("trace_exit_0", "JIT stub"),
        "ESCAPE-8-2": ("ESCAPE-8-2", "JIT stub"),
        # PHP 8.4.
        " ESCAPE-13-6": ("ESCAPE-13-6", "JIT stub"),
        "JIT$$hybrid_func_trace_counter": ("hybrid_func_trace_counter", "JIT stub"),
        r"TRACE-9${closure:App\Job::run():7}$7": (r"{closure:App\Job::run():7} @ :7:0", "PHP function js, Tracing JIT"),
    },
    "BEAM": {
        "hotp:fib/1": ("hotp:fib/1", "Erlang function"),
        "hotp:fib/1-CodeInfoPrologue": ("hotp:fib/1", "Erlang function"),
        "erlang:'=:='/2": ("erlang:'=:='/2", "Erlang function"),
        "erlang:'/'/2": ("erlang:'/'/2", "Erlang function"),
        "init:'-patch_dir/2-lc$^1/1-0-'/1-CodeInfoPrologue": ("init:'-patch_dir/2-lc$^1/1-0-'/1", "Erlang function"),
        "erts_beamasm:normal_exit/0-CodeInfoPrologue": ("erts_beamasm:normal_exit/0", "JIT stub"),
        "hotp::codeHeader": ("hotp::codeHeader", "JIT stub"),
        "erl_init::codeFooter": ("erl_init::codeFooter", "JIT stub"),
        "global::call_light_bif_shared": ("global::call_light_bif_shared", "JIT stub"),
    },
    "CPython": {
        "py::lam.<locals>.<lambda>:/home/dev/sample/py313-dwarf/../hot.py": (
            f"lam.<locals>.<lambda> @ {HOT_PY}:0:0", "Python function js",
        ),
        "py::<module>:<string>": ("<module> @ <string>:0:0", "Python function js"),
        "py::_path_isabs:<frozen importlib._bootstrap_external>": (
            "_path_isabs @ <frozen importlib._bootstrap_external>:0:0", "Python function js",
        ),
    },
    "Numba": {
        "_ZN8__main__5heavyB2v1B38c8tJTIeFIjxB2IKSgI4CrvQClQZ6FczSBAA_3dEx": (
            "__main__.heavy", "Python function, Numba",
        ),
        "_ZN8__main__5innerB2v2B38c8tJTIeFIjxB2IKSgI4CrvQClQZ6FczSBAA_3dE23Literal_5bint_5d_281_29x": (
            "__main__.inner", "Python function, Numba",
        ),
        "_ZN8__main__4main12_3clocals_3e4nestB3v12B2c8Ex": ("__main__.main.<locals>.nest", "Python function, Numba"),
    },
    "Mono": {
        "Shop.W:Main ()": ("Shop.W:Main ()", "Managed function"),
        "Shop.Row`1<T_REF>:.ctor ()": ("Shop.Row`1<T_REF>:.ctor ()", "Managed function"),
        "Shop.W:<Linq>m__0 (int)": ("Shop.W:<Linq>m__0 (int)", "Managed function"),
        "System.Linq.Enumerable:Sum<int> (System.Collections.Generic.IEnumerable`1<int>,System.Func`2<int, int>)": (
            "System.Linq.Enumerable:Sum<int> (System.Collections.Generic.IEnumerable`1<int>,System.Func`2<int, int>)",
            "Managed function",
        ),
        "System.Linq.Enumerable/WhereSelectEnumerableIterator`2<int, int>:MoveNext ()": (
            "System.Linq.Enumerable/WhereSelectEnumerableIterator`2<int, int>:MoveNext ()", "Managed function",
        ),
        "(wrapper runtime-invoke) object:runtime_invoke_void (object,intptr,intptr,intptr)": (
            "(wrapper runtime-invoke) object:runtime_invoke_void (object,intptr,intptr,intptr)", "Wrapper function",
        ),
        "delegate_invoke_impl_target_1": ("delegate_invoke_impl_target_1", "JIT trampoline"),
        "generic_trampoline_jit": ("generic_trampoline_jit", "JIT trampoline"),
        "rgctx_fetch_trampoline_rgctx_0": ("rgctx_fetch_trampoline_rgctx_0", "JIT trampoline"),
        "sdb_breakpoint_trampoline": ("sdb_breakpoint_trampoline", "JIT trampoline"),
        "throw_corlib_exception": ("throw_corlib_exception", "JIT stub"),
        "rethrow_exception": ("rethrow_exception", "JIT stub"),
        "restore_context": ("restore_context", "JIT stub"),
        "call_filter": ("call_filter", "JIT stub"),
        "llvm_resume_unwind_trampoline": ("llvm_resume_unwind_trampoline", "JIT stub"),
        "(null)": ("trampoline", "JIT trampoline"),
    },
    "wasmtime": {
        "wfib": ("wfib", "WebAssembly wasm"),
        "wasm[0]::array_to_wasm_trampoline[1]": ("wasm[0]::array_to_wasm_trampoline[1]", "JIT trampoline"),
        "signatures[0]::wasm_to_array_trampoline": ("signatures[0]::wasm_to_array_trampoline", "JIT trampoline"),
    },
    "LLVM": {
        "fib": ("fib", "JIT function"),
    },
    "CoreCLR": {
        "instance int32 [App] App.Program::Work(int32)[OptimizedTier1]": (
            "App.Program.Work(int32)", ".NET function, OptimizedTier1",
        ),
        "instance bool [System.Private.CoreLib] System.Threading.ThreadPoolWorkQueue::Dequeue(class Foo&,bool&)"
        "[QuickJitted]": (
            "System.Threading.ThreadPoolWorkQueue.Dequeue(Foo&,bool&)", ".NET function, QuickJitted",
        ),
        # .NET Core 3.1 wrote these.
        "stub<1> AllocateTemporaryEntryPoints<PRECODE_FIXUP>": (
            "AllocateTemporaryEntryPoints<PRECODE_FIXUP>", "JIT stub",
        ),
        "instance int32 [App] App.Box`1+Inner`1[System.__Canon,System.Int32]::Count(!1[],!0&,int32[0...,0...])"
        "[Optimized]": (
            "App.Box.Inner<System.__Canon,System.Int32>.Count(!1[],!0&,int32[,])", ".NET function, Optimized",
        ),
        "class [System.Runtime]System.Collections.Generic.IEnumerable`1<!!0> [System.Linq] "
        "System.Linq.Enumerable::Where(class [System.Runtime]System.Collections.Generic.IEnumerable`1<!!0>,"
        "class [System.Runtime]System.Func`2<!!0,bool>)[QuickJitted]": (
            "System.Linq.Enumerable.Where(System.Collections.Generic.IEnumerable<!!0>,System.Func<!!0,bool>)",
            ".NET function, QuickJitted",
        ),
        "instance bool [App] App.Program+<Main>c__AnonStorey0::<>m__0(int32)[OptimizedTier1]": (
            "App.Program.<Main>c__AnonStorey0.<>m__0(int32)", ".NET function, OptimizedTier1",
        ),
        # The sources of later versions write these. Neither the brackets of an array nor those of an attribute's
        # assembly begin the method.
        "int32[,] [App] App.Grid::Make(int32[,],unsigned int8[]&,native int*)[OptimizedTier1OSR]": (
            "App.Grid.Make(int32[,],unsigned int8[]&,native int*)", ".NET function, OptimizedTier1 (OSR)",
        ),
        "instance void modreq([System.Runtime]System.Runtime.CompilerServices.IsExternalInit) [App] "
        "App.Entry::set_Token(string)[Optimized]": ("App.Entry.set_Token(string)", ".NET function, Optimized"),
        "instance void [System.Private.CoreLib] "
        "System.Collections.Generic.List`1[[System.Int32, System.Private.CoreLib, Version=8.0.0.0]]::.ctor(int32)"
        "[PreJIT]": ("System.Collections.Generic.List<System.Int32>..ctor(int32)", ".NET function, PreJIT"),
        "void [App] App.Startup::Main(string[])[PreJit-cold]": (
            "App.Startup.Main(string[])", ".NET function, PreJIT (cold)",
        ),
        "instance class [System.Runtime]System.IEnumerator`1<!0> [App] "
        "App.Outer`1+Inner`2[System.Int32,App.Map`2[System.__Canon,System.Int32[]],System.Byte]"
        "::Go(value class [System.Runtime]System.Nullable`1<int32>,class App.Outer`1/Inner`2<!0,!!0>)[Instrumented]": (
            "App.Outer.Inner<System.Int32,App.Map<System.__Canon,System.Int32[]>,System.Byte>"
            ".Go(System.Nullable<int32>,App.Outer.Inner<!0,!!0>)", ".NET function, Instrumented",
        ),
        "void [App] App.Program+<>c__DisplayClass0_0::<Main>b__0(int32)[InstrumentedTier]": (
            "App.Program.<>c__DisplayClass0_0.<Main>b__0(int32)", ".NET function, InstrumentedTier",
        ),
        "void [App] App.A::F()[InstrumentedTierOptimized]": (
            "App.A.F()", ".NET function, InstrumentedTierOptimized",
        ),
        "void [App] App.A::F()[MinOptJitted]": ("App.A.F()", ".NET function, MinOptJitted"),
        "void [App] App.A::F()[MinOptimized]": ("App.A.F()", ".NET function, MinOptimized"),
        "void [App] App.A::F()[OptimizedTier0]": ("App.A.F()", ".NET function, OptimizedTier0"),
        "void [App] App.A::F()[OptimizedTier1/OSR]": ("App.A.F()", ".NET function, OptimizedTier1 (OSR)"),
        "void [App] App.A::F()[Unknown]": ("App.A.F()", ".NET function"),
        # Without PerfMapShowOptimizationTiers.
        "instance void [App] App.Type::Google.Protobuf.IBufferMessage.InternalWriteTo(class W&)": (
            "App.Type.Google.Protobuf.IBufferMessage.InternalWriteTo(W&)", ".NET function",
        ),
        "void [App] dynamicClass::IL_STUB_PInvoke(native int)": (
            "dynamicClass.IL_STUB_PInvoke(native int)", ".NET function",
        ),
        "stub<12> GenerateLookupStub<GenerateLookupStub>": ("GenerateLookupStub<GenerateLookupStub>", "JIT stub"),
        "stub<1> GenerateLookupStub": ("GenerateLookupStub", "JIT stub"),
        "stub ReportStubBlock<PrecodeStub>": ("ReportStubBlock<PrecodeStub>", "JIT stub"),
    },
    "Ruby": {
        "[JIT] block in fib@/app/my app/fib.rb:3": (
            "block in fib @ /app/my app/fib.rb:3:0", "Ruby function js, YJIT",
        ),
        "[JIT] Integer#times@<internal:numeric>:237": (
            "Integer#times @ <internal:numeric>:237:0", "Ruby function js, YJIT",
        ),
        "[JIT] Work#collatz": ("Work#collatz", "Ruby function js, YJIT"),
        "[JIT] Object#block in <main>": ("Object#block in <main>", "Ruby function js, YJIT"),
        "[JIT] #<Class:0x00007f1d5c0a1b28>#call": ("#<Class:0x00007f1d5c0a1b28>#call", "Ruby function js, YJIT"),
        "[JIT] gen_opt_plus": ("gen_opt_plus", "JIT stub, YJIT"),
        "ZJIT: fib@/app/fib.rb:1": ("fib @ /app/fib.rb:1:0", "Ruby function js, ZJIT"),
        "ZJIT: entry trampoline": ("entry trampoline", "JIT stub, ZJIT"),
        "zjit::fib@None:0": ("fib", "Ruby function js, ZJIT"),
        "zjit::stub": ("stub", "JIT stub, ZJIT"),
    },
    "LuaJIT": {
        "TRACE_12::/app/fib.lua:3": ("fib.lua:3 @ /app/fib.lua:3:0", "Lua function js, Tracing JIT"),
    },
    "Julia": {
        "julia_#fib#3_123": ("#fib#3", "Julia function"),
        "japi1_fib_124": ("fib", "Julia function"),
        "japi3_fib_124": ("fib", "Julia function"),
        "jfptr_fib_125": ("fib", "Julia trampoline"),
        "jlcapi_fib_126": ("fib", "Julia trampoline"),
        "jlsys_fib_126": ("fib", "Julia trampoline"),
        "gfptrjl_fib_126": ("fib", "Julia trampoline"),
        "jlplt_memcpy_127": ("memcpy", "JIT stub"),
        "tojlinvoke128": ("tojlinvoke128", "JIT trampoline"),
    },
    "Dart": {
        "*file:///app/fib.dart_::_fib": ("fib @ /app/fib.dart:0:0", "Dart function, Optimized"),
        "file:///app/my_fib.dart_Fib_run_once": ("Fib.run_once @ /app/my_fib.dart:0:0", "Dart function, Unoptimized"),
        "*dart:core__GrowableList@0150898_add": ("_GrowableList.add @ dart:core:0:0", "Dart function, Optimized"),
        "dart:_internal_::__f@12": ("_f @ dart:_internal:0:0", "Dart function, Unoptimized"),
        "*package:a/b_c.dart_X_y": ("X.y @ package:a/b_c.dart:0:0", "Dart function, Optimized"),
        "package:a/b_c.dart__X@1_y": ("_X.y @ package:a/b_c.dart:0:0", "Dart function, Unoptimized"),
    },
}  # fmt: skip

SOURCES_SAY: dict[str, Cases] = {
    "V8": {
        "Script:~ /a b.js:1:1": ("(anonymous) @ /a b.js:1:1", f"{JS}, Interpreter"),
        "Script:~ /a.js": ("(anonymous) @ /a.js:0:0", f"{JS}, Interpreter"),
        "JS:o+f /a.js:1:2": ("f @ /a.js:1:2", f"{JS}, Maglev (OSR)"),
        "JS:o*f /a.js:1:2": ("f @ /a.js:1:2", f"{JS}, Turbofan (OSR)"),
        "JS:?f /a.js:1:2": ("f @ /a.js:1:2", JS),
        "JS:f /a.js:1:2": ("f @ /a.js:1:2", f"{JS}, Interpreter"),
        "Eval:f :1:2": ("f @ :1:2", f"{JS}, Interpreter"),
        "LazyCompile:*f /a.js:1:2": ("f @ /a.js:1:2", f"{JS}, Turbofan"),
        "JS:wasm-function[5206]-5206-liftoff": ("wasm-function[5206] (WASM:5206)", f"{WASM}, Liftoff (wasm)"),
        "JS:a-b-7-turbofan": ("a-b (WASM:7)", f"{WASM}, Turbofan (wasm)"),
        "RegExp.> src: '' flags: 'x' flags: 'gu'": ("/' flags: 'x/gu", "RegExp regexp"),
        "RegExp.< src: 'a+' flags: 'y'": ("/a+/y", "RegExp regexp"),
        "RegExp:a|b": ("/a|b/", "RegExp regexp"),
        "RegExp::a": (":a", "RegExp regexp"),
        "Stub:js-to-wasm:i:i": ("js-to-wasm:i:i", "JIT stub"),
        "Handler:f": ("f", "JIT inline cache"),
        "Callback:f": ("f", "JIT trampoline"),
        # Files without a folder, or with spaces; functions with spaces.
        r"JS:~f C:\Program Files (x86)\a.js:1:2": (r"f @ C:\Program Files (x86)\a.js:1:2", f"{JS}, Interpreter"),
        "JS:~a b c ../x y/z.js:1:2": ("a b c @ ../x y/z.js:1:2", f"{JS}, Interpreter"),
        "JS:~f my file.js:1:2": ("f @ my file.js:1:2", f"{JS}, Interpreter"),
        "JS:~get x my file.js:1:2": ("get x @ my file.js:1:2", f"{JS}, Interpreter"),
        "JS:~get file.js:1:2": ("get @ file.js:1:2", f"{JS}, Interpreter"),
        "JS:~get x :1:2": ("get x @ :1:2", f"{JS}, Interpreter"),
        "JS:~f evalmachine.<anonymous>:1:2": ("f @ evalmachine.<anonymous>:1:2", f"{JS}, Interpreter"),
        # Not a position: cut off, or beyond any file.
        "JS:~get x /a.js:1": ("get x /a.js:1", f"{JS}, Interpreter"),
        "JS:~f /a.js:1:12345678901": ("f /a.js:1:12345678901", f"{JS}, Interpreter"),
        "JS:~f /a.js:1:٣": ("f /a.js:1:٣", f"{JS}, Interpreter"),
    },
    "JavaScriptCore": {
        "JSC-DFG: diffProps[Call (StrictMode)] /home/x y/index.js:123:12": (
            "diffProps @ /home/x y/index.js:123:12", f"{JS}, DFG",
        ),
        "JSC-FTL: f#BbF6aX[Call (DidTryToEnterInLoop) (StrictMode)] a.js:1:2": ("f @ a.js:1:2", f"{JS}, FTL"),
        "JSC-FTL: Vec3#DRupA9 /a.js:1:2": ("Vec3 @ /a.js:1:2", f"{JS}, FTL"),
        "JSC-FTL: Vec3[Construct] /a.js:1:2": ("Vec3 @ /a.js:1:2", f"{JS}, FTL"),
        "JSC-FTL: forEach[Call (StrictMode)]": ("forEach", f"{JS}, FTL"),
        "JSC-JumpIsland: x": ("x", "JIT trampoline, JumpIsland"),
        "JSC-CSSJIT: x": ("x", "JIT stub, CSSJIT"),
        "JSC-Uncategorized: x": ("x", "JIT stub, Uncategorized"),
        "JSC-Novelty: x": ("Novelty: x", "JIT stub"),
        "BaselineThunk: x": ("x", "JIT stub, Trampoline"),
        "PolymorphicCallStubBaseline: f[Call] /a.js:1:2": ("f @ /a.js:1:2", "JIT stub js, Trampoline"),
        "PolymorphicAccessStubBaseline: f": ("f", "JIT stub js, Trampoline"),
    },
    "SpiderMonkey": {
        "IonIC: SetElem : AccessibleButton (main.js:3560:25)": (
            "AccessibleButton @ main.js:3560:25", "JIT inline cache js, IonIC",
        ),
        "IonIC: SetElem": ("SetElem", "JIT inline cache, IonIC"),
        "IC: GetProp": ("GetProp", "JIT inline cache, IC"),
        "Wasm: f": ("f", f"{WASM}, Wasm"),
        "WasmTrampoline: f": ("f", "JIT trampoline, WasmTrampoline"),
        "BaselineInterpreter": ("BaselineInterpreter", "JavaScript stub, BaselineInterpreter"),
        "run_wasm_sm.js line 41 > WebAssembly.Module:916249: Function Element.updateChild": (
            "Element.updateChild @ run_wasm_sm.js line 41 > WebAssembly.Module:0:0", f"{WASM}, Wasm",
        ),
        r"Ion: \uD83D\uDE00\uD800 (/a (1)/b.js:1:2)": ("😀� @ /a (1)/b.js:1:2", f"{JS}, Ion"),
        "Ion: f (x)": ("f (x)", f"{JS}, Ion"),
    },
    "HotSpot": {
        # As in perf maps of OpenJDK 21 and 25.
        "int App.inner(int)": ("App.inner(int)", "Java function"),
        "java.lang.Object[] java.util.ArrayList.toArray(java.lang.Object[])": (
            "java.util.ArrayList.toArray(java.lang.Object[])", "Java function",
        ),
        "void App$Job.<init>()": ("App$Job.<init>()", "Java function"),
        "void App.lambda$main$1(long, int[][])": ("App.lambda$main$1(long, int[][])", "Java function"),
        "boolean java.util.regex.CharPredicates$$Lambda/0x800000024.is(int)": (
            "java.util.regex.CharPredicates$$Lambda/0x800000024.is(int)", "Java function",
        ),
        # Of JRuby 9 on OpenJDK 17; of Kotlin, in whose names blanks may be.
        "org.jruby.X $_dot_dot_.app.RUBY$method$f$2(int)": ("$_dot_dot_.app.RUBY$method$f$2(int)", "Java function"),
        "org.jruby.X $_dot_dot_.app.invokeOther15:+(int)": ("$_dot_dot_.app.invokeOther15:+(int)", "Java function"),
        "LApp;adds (two) numbers(I)V": ("App.adds (two) numbers(int)", "Java function"),
        "void org.App.adds (two) numbers(int)": ("org.App.adds (two) numbers(int)", "Java function"),
        r"int $_dot_.app.RUBY$block$\=\^main\_$1()": (r"$_dot_.app.RUBY$block$\=\^main\_$1()", "Java function"),
        "void AppTest.adds two numbers()": ("AppTest.adds two numbers()", "Java function"),
        "StubRoutines (1)": ("StubRoutines (1)", "JIT stub"),
        "I2C/C2I adapters": ("I2C/C2I adapters", "JIT stub"),
        "LA;b([[ZFSC)[[I": ("A.b(boolean[][], float, short, char)", "Java function"),
        "LA;b(X)V": ("LA;b(X)V", "JIT stub"),
        "LA;b(I)": ("LA;b(I)", "JIT stub"),
    },
    "PHP": {
        r"JIT$App\Jobs\Vec::dot": (r"App\Jobs\Vec::dot", "PHP function js, Function JIT"),
        r"JIT$C:\www\hot.php": (r"{main} @ C:\www\hot.php:0:0", "PHP function js, Function JIT"),
        "TRACE-8$class@anonymous": ("class@anonymous", "PHP function js, Tracing JIT"),
        r"TRACE-7$App\Svc\Höhe@anonymous": (r"App\Svc\Höhe@anonymous", "PHP function js, Tracing JIT"),
        "JIT$class@anonymous": ("class@anonymous", "PHP function js, Function JIT"),
        "TRACE-x$f$1": ("TRACE-x$f$1", "JIT function"),
        "TRACE-7$f": ("TRACE-7$f", "JIT function"),
    },
    "BEAM": {
        "'Elixir.Enum':'-map/2-fun-0-'/3": ("'Elixir.Enum':'-map/2-fun-0-'/3", "Erlang function"),
        "http://a/5": ("http://a/5", "JIT function"),
        # Of perf maps.
        "$m:fib/1": ("m:fib/1", "Erlang function"),
        "$m:'-loop/2-lc$^0/1-0-'/1-CodeInfoPrologue": ("m:'-loop/2-lc$^0/1-0-'/1", "Erlang function"),
        "$erts_beamasm:normal_exit/0-CodeInfoPrologue": ("erts_beamasm:normal_exit/0", "JIT stub"),
        "$m::codeHeader": ("m::codeHeader", "JIT stub"),
        "$global::call_light_bif_shared": ("global::call_light_bif_shared", "JIT stub"),
    },
    "Numba": {
        "_ZN8__main__12_3clambda_3eB2v3B2c8Ex": ("__main__.<lambda>", "Python function, Numba"),
        "_ZN13_3cdynamic_3e1fB2v3B2c8Ex": ("<dynamic>.f", "Python function, Numba"),
        "_ZN8__main__9h_c3_b6heB2v6B2c8Ex": ("__main__.höhe", "Python function, Numba"),
        "_ZN8__main__12_e6_97_a5_e3B2v6B2c8Ex": ("__main__.日_e3", "Python function, Numba"),
        # Names by nature, one of which would be no letter.
        "_ZN8__main__6fft_2dB2v6B2c8Ex": ("__main__.fft_2d", "Python function, Numba"),
        "_ZN8__main__7step_e3B2v6B2c8Ex": ("__main__.step_e3", "Python function, Numba"),
        "_ZN8__main__7f_c2_a0B2v6B2c8Ex": ("__main__.f_c2_a0", "Python function, Numba"),
        "_ZN7cpython8__main__5lightB2v3B38c8tJTIeFIjxB2IKSgI4CrvQClQZ6FczSBAA_3dEx": (
            "__main__.light (wrapper)", "JIT stub",
        ),
        "cfunc._ZN8__main__5lightB2v3B38c8tJTIeFIjxB2IKSgI4CrvQClQZ6FczSBAA_3dEx": (
            "__main__.light (wrapper)", "JIT stub",
        ),
        "NRT_incref": ("NRT_incref", "JIT function"),
        "_ZN3foo3barB5cxx11Ev": ("_ZN3foo3barB5cxx11Ev", "JIT function"),
    },
    "Mono": {
        # No methods: no class, no blank before the arguments, no end of them.
        "Main ()": ("Main ()", "JIT function"),
        "W:Main()": ("W:Main()", "JIT function"),
        "W:Main (int": ("W:Main (int", "JIT function"),
        "W:a b (int)": ("W:a b (int)", "JIT function"),
        "(wrapper x) y": ("(wrapper x) y", "JIT function"),
    },
    "CPython": {
        r"py::f:C:\a.py": (r"f @ C:\a.py:0:0", "Python function js"),
    },
    "wasmtime": {
        "wasm[0]::function[1]::f": ("f", "WebAssembly wasm"),
        "wasm[0]::function[1]": ("wasm[0]::function[1]", "WebAssembly wasm"),
    },
    "LLVM": {},
    "CoreCLR": {
        # No methods: no class, no arguments, no assembly; and what C++ is called.
        "void [App] F()": ("void [App] F()", "JIT function"),
        "void [App] App.A::F": ("void [App] App.A::F", "JIT function"),
        "icu_78::CollationKeys::write(icu_78::CollationIterator&)[Optimized]": (
            "icu_78::CollationKeys::write(icu_78::CollationIterator&)[Optimized]", "JIT function",
        ),
        # Brackets that do not fit.
        "void [App] App.A`1[B]]::F()": ("App.A<B>>.F()", ".NET function"),
        "void [App] App.A`1[[[B::F()": ("App.A<B.F()", ".NET function"),
        # Not a tier.
        "void [App] App.A::F()[Novelty]": ("void [App] App.A::F()[Novelty]", "JIT function"),
    },
    "Ruby": {"[JIT] attr=@x@/a.rb:1": ("attr=@x @ /a.rb:1:0", "Ruby function js, YJIT")},
    "LuaJIT": {"TRACE_1::x": ("TRACE_1::x", "JIT function")},
    "Julia": {"julia_x": ("julia_x", "JIT function")},
    "Dart": {"*f": ("*f", "JIT function"), "dart:core": ("dart:core", "JIT function")},
    "unknown": {
        "JS:*f /a.js:1:2": ("f @ /a.js:1:2", f"{JS}, Turbofan"),
        r"RegExp:(\d+)-([a-z]+)": (r"/(\d+)-([a-z]+)/", "RegExp regexp"),
        "RegExp::match": ("RegExp::match", "JIT function"),
        "JSC-DFG: f#BbF6aX": ("f", f"{JS}, DFG"),
        "Baseline: f (/a.js:1:2)": ("f @ /a.js:1:2", f"{JS}, Baseline"),
        "LHot;fib(I)I": ("Hot.fib(int)", "Java function"),
        "TRACE-1$f$3": ("f @ :3:0", "PHP function js, Tracing JIT"),
        "hotp:fib/1": ("hotp:fib/1", "Erlang function"),
        "py::f:/a.py": ("f @ /a.py:0:0", "Python function js"),
        "wasm[0]::function[1]::f": ("f", "WebAssembly wasm"),
        "Interpreter": ("Interpreter", "JIT function"),
        "vtable stub": ("vtable stub", "JIT function"),
        "_ZN3foo3barEv": ("_ZN3foo3barEv", "JIT function"),
        "": ("(anonymous)", "JIT function"),
    },
}  # fmt: skip

# The colours of samply's jit_category_manager.rs; the family only where it is not the name.
COLORS = {
    "Interpreter": "magenta", "Baseline": "blue", "Builtin": "brown",
    "Maglev": "green", "Maglev (context specialized)": "green", "Maglev (OSR)": "green",
    "Turbofan": "green", "Turbofan (context specialized)": "green", "Turbofan (OSR)": "green",
    "Liftoff (wasm)": "blue", "Turbofan (wasm)": "green",
    "DFG": "magenta", "FTL": "green", "BBQ": "blue", "OMG": "green", "IC": "brown", "CSSJIT": "red",
    "Thunk": "darkgrey", "LLIntThunk": "darkgrey", "ExtraCTIThunk": "darkgrey", "DFGThunk": "darkgrey",
    "FTLThunk": "darkgrey", "WasmThunk": "darkgrey", "DFGOSREntry": "darkgrey", "DFGOSRExit": "darkgrey",
    "FTLOSRExit": "darkgrey", "JumpIsland": "darkgrey", "Uncategorized": "darkgrey",
    "BaselineInterpreter": "magenta", "BlinterpOp": "magenta", "Ion": "green", "Wasm": "blue", "IonIC": "brown",
    "BaselineIC": "brown", "BaselineICFallback": "brown",
    "Trampoline": "darkgrey", "WasmTrampoline": "darkgrey", "VMWrapper": "darkgrey",
}  # fmt: skip
NOT_IN_SAMPLY = {
    "Numba": "green",
    "Tracing JIT": "green", "Function JIT": "blue", "YJIT": "green", "ZJIT": "green",
    "PreJIT": "brown", "PreJIT (cold)": "brown", "QuickJitted": "yellow", "OptimizedTier0": "yellow",
    "MinOptJitted": "yellow", "MinOptimized": "yellow", "Instrumented": "magenta", "InstrumentedTier": "magenta",
    "InstrumentedTierOptimized": "magenta", "Optimized": "green", "OptimizedTier1": "green",
    "OptimizedTier1 (OSR)": "green", "Unoptimized": "yellow",
}  # fmt: skip
FAMILIES = {
    "Maglev (context specialized)": "Maglev", "Maglev (OSR)": "Maglev",
    "Turbofan (context specialized)": "Turbofan", "Turbofan (OSR)": "Turbofan",
    "BlinterpOp": "BaselineInterpreter", "BaselineICFallback": "BaselineIC",
    "WasmTrampoline": "Trampoline", "VMWrapper": "Trampoline",
    "PreJIT (cold)": "PreJIT", "OptimizedTier0": "QuickJitted", "MinOptJitted": "QuickJitted",
    "MinOptimized": "QuickJitted", "InstrumentedTier": "Instrumented", "InstrumentedTierOptimized": "Instrumented",
    "OptimizedTier1": "Optimized", "OptimizedTier1 (OSR)": "Optimized",
}  # fmt: skip
# samply has a second Interpreter for the machine code that interprets.
RED_INTERPRETERS = {("V8", "BytecodeHandler"), ("SpiderMonkey", "Interpreter"), ("HotSpot", "Interpreter")}

PROFILER_COLORS = (
    "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta", "red", "lightred", "darkgrey",
    "grey",
)  # fmt: skip
KINDS = ("function", "builtin", "stub", "trampoline", "regexp", "inline cache", "wasm")

CAPTURES = {
    "bigfp/jit-22723.dump": "V8",
    "bigjit/jit-12657.dump": "V8",
    "bun-src/jit-10873-10871.dump": "JavaScriptCore",
    "erl25/jit-9665.dump": "BEAM",
    "java17/jit-7180.dump": "HotSpot",
    "lli19mc/jit-13217.dump": "LLVM",
    "node24/jit-27512.dump": "V8",
    "node24-killed/jit-29317.dump": "V8",
    "node24-switch/jit-29077.dump": "V8",
    "php82/jit-7884.dump": "PHP",
    "php84/jit-26625.dump": "PHP",
    "py313/jit-26854.dump": "CPython",
    "py315/jit-22726.dump": "CPython",
    "samply-ext/ext-A-big-s102.dump": "V8",
    "samply-ext/ext-A-little-s101.dump": "V8",
    "samply-ext/ext-B-little-s103.dump": "V8",
    "samply-ext/ext-mixed-little-s104.dump": "V8",
    "spidermonkey/jit-13635.dump": "SpiderMonkey",
    "wasmtime/jit-9865.dump": "wasmtime",
}


# ---------------------------------------------------------------- names one by one


def drawn(name: Name) -> tuple[str, str]:
    place = f" @ {name.file}:{name.line}:{name.column}" if name.file or name.line or name.column else ""
    tier = f", {name.tier.name}" if name.tier else ""
    return name.function + place, f"{name.category} {name.kind}{' js' if name.is_js else ''}{tier}"


@pytest.mark.parametrize(
    ("producer", "name", "expected"),
    [
        pytest.param(producer, name, expected, id=f"{producer} {name}")
        for table in (SEEN, SOURCES_SAY)
        for producer, cases in table.items()
        for name, expected in cases.items()
    ],
)
def test_a_name_is_parsed(producer: str, name: str, expected: tuple[str, str]) -> None:
    assert drawn(Producer(producer).parse(name)) == expected


def test_every_pattern_has_a_name_above() -> None:
    """Each beginning, and each meaning; of V8's functions each marker and each tag, but not each pair of them. The last
    pattern is for names that no other fits; the next test is about those."""
    for producer in SEEN:
        known = {**SEEN[producer], **SOURCES_SAY[producer]}
        patterns = PATTERNS[producer][:-1]
        found = {(n.kind, n.category, n.tier, n.is_js) for n in map(Producer(producer).parse, known)}
        assert {(p.kind, p.category, p.tier, p.is_js) for p in patterns} - found == set()
        starts = {p.start for p in patterns if not (producer == "V8" and p.is_js)}
        assert [s for s in starts if not any(name.startswith(s) for name in known)] == []


def test_a_name_that_no_pattern_fits_is_a_function_as_it_is() -> None:
    for producer in set(PATTERNS) - {"HotSpot", "wasmtime"}:
        assert Producer(producer).parse("öh? <x>") == Name("öh? <x>", "function", "JIT", None)


# ---------------------------------------------------------------- tiers and colours


def tiers_of(producer: str) -> set[Tier]:
    return {p.tier for p in PATTERNS[producer] if p.tier}


@pytest.mark.parametrize("producer", SEEN)
def test_tiers_have_the_words_and_colours_of_samply(producer: str) -> None:
    for tier in tiers_of(producer):
        if tier.color == "red" and tier.name == "Interpreter":
            assert (producer, tier.family) in RED_INTERPRETERS
        else:
            assert tier == Tier(tier.name, FAMILIES.get(tier.name, tier.name), (COLORS | NOT_IN_SAMPLY)[tier.name])


@pytest.mark.parametrize("producer", SEEN)
def test_a_family_is_one_colour(producer: str) -> None:
    families = {(tier.family, tier.color) for tier in tiers_of(producer)}
    assert len(families) == len({family for family, _ in families})


def test_categories_and_kinds_are_the_declared_ones() -> None:
    patterns = [p for patterns in PATTERNS.values() for p in patterns]
    assert {p.category for p in patterns} <= set(CATEGORY_COLORS)
    assert {p.kind for p in patterns} == set(KINDS)
    # No code that a compiler wrote is idle, which has no colour.
    shown = {color for name, color in CATEGORY_COLORS.items() if name != IDLE}
    assert {*shown, *(p.tier.color for p in patterns if p.tier)} <= set(PROFILER_COLORS)


# ---------------------------------------------------------------- whose names?


@pytest.mark.parametrize("producer", SEEN)
def test_a_producer_is_known_by_its_names(producer: str) -> None:
    assert producer_of(list(SEEN[producer])) == Producer(producer)


@pytest.mark.parametrize("producer", sorted(set(SEEN) - {"LLVM"}))
def test_a_few_odd_names_change_nothing(producer: str) -> None:
    odd = [next(iter(SEEN[other])) for other in SEEN if other != producer]
    assert producer_of(odd + list(SEEN[producer]) * 5) == Producer(producer)


def test_symbols_of_a_linker_are_llvm_s() -> None:
    assert producer_of(["main", "_ZN3foo3barEv", "julia_f_123", "f.cold"] * 5 + ["odd one"]) == Producer("LLVM")


def test_nothing_to_go_by_is_unknown() -> None:
    assert producer_of([]) == Producer("unknown")
    assert producer_of(["dynamicClass::IL_STUB_PInvoke()", "x => x"]) == Producer("unknown")


# ---------------------------------------------------------------- hostile names

STARTS = sorted({p.start for patterns in PATTERNS.values() for p in patterns})
PIECES = [" ", ":", "1", "(", ")", "[", "]", ";", "#", "$", "/", "-", "'", "\\u30E1", "\\uD800", "::", " : ", "I", "é"]


@given(
    producer=st.sampled_from(sorted(PATTERNS)),
    start=st.sampled_from(STARTS),
    rest=st.text() | st.lists(st.sampled_from(PIECES)).map("".join),
)
def test_any_text_is_a_name(producer: str, start: str, rest: str) -> None:
    name = Producer(producer).parse(start + rest)
    assert name.function
    assert name.kind in KINDS
    assert name.category in CATEGORY_COLORS
    assert 0 <= name.line < 10**9
    assert 0 <= name.column < 10**9


@pytest.mark.parametrize("piece", [*PIECES, ":1", " a:", " (", "[L", "-1", "[Call"])
def test_a_name_of_30_000_pieces_is_read_in_linear_time(piece: str) -> None:
    """Nothing is measured, but quadratic work would take minutes."""
    starts = ("", "JS:~", "JS:", "RegExp.> src: '", "JSC-DFG: ", "Ion: ", "IonIC: ", "LA;b(", "TRACE-1$", "'", "py::",
              "wasm[0]::function[1]::")  # fmt: skip
    for start in starts:
        for end in ("", ":1:1", ":1:1)", ")V", "-1-liftoff", "'/1"):
            assert Producer("unknown").parse(start + piece * 30_000 + end).function


# ---------------------------------------------------------------- the captures

LOAD, DEBUG_INFO = 0, 2
LOAD_HEADER = struct.Struct("<IIQQQQ")
DEBUG_HEADER = struct.Struct("<QQ")
DEBUG_ENTRY = struct.Struct("<QII")


@cache
def dump_of(capture: str) -> bytes:
    folder = shared("captures/jit")
    if (folder / capture).exists():
        return (folder / capture).read_bytes()
    packed = shared(f"captures/jit/{capture}.zst").read_bytes()
    return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)).read()


def loads_of(dump: bytes) -> Iterator[tuple[str, bytes]]:
    """The name of each code object, and the debug information that precedes it."""
    order = "<" if dump[:4] == b"DTiJ" else ">"
    (at,) = struct.unpack_from(order + "I", dump, 8)
    debug_info = b""
    while at + 16 <= len(dump):
        kind, size = struct.unpack_from(order + "II", dump, at)
        payload = dump[at + 16 : at + size]
        if at + size > len(dump):
            return
        if kind == DEBUG_INFO:
            debug_info = payload
        elif kind == LOAD:
            name_at = LOAD_HEADER.size
            yield payload[name_at : payload.index(0, name_at)].decode(), debug_info
            debug_info = b""
        at += size


def names_of(capture: str) -> list[str]:
    return list(dict.fromkeys(name for name, _ in loads_of(dump_of(capture))))


@pytest.mark.parametrize(("capture", "producer"), CAPTURES.items())
def test_the_producer_of_a_capture_is_recognised(capture: str, producer: str) -> None:
    assert producer_of(names_of(capture)) == Producer(producer)


@pytest.mark.parametrize(("capture", "producer"), CAPTURES.items())
def test_every_name_of_a_capture_has_its_pattern(capture: str, producer: str) -> None:
    names = names_of(capture)
    parsed = {name: Producer(producer).parse(name) for name in names}
    generic = {name for name in names if drawn(parsed[name])[1] == "JIT function"}
    bare = {name for name in names if not name.startswith("JS:")} if capture.startswith("samply-ext") else set()
    assert generic == (set(names) if producer == "LLVM" else bare)


@pytest.mark.parametrize("producer", sorted(set(CAPTURES.values())))
def test_the_names_above_are_in_the_captures(producer: str) -> None:
    names = {name for capture, by in CAPTURES.items() if by == producer for name in names_of(capture)}
    assert set(SEEN[producer]) - names == set()


@pytest.mark.parametrize("capture", [c for c in CAPTURES if c.startswith(("node24", "big", "spidermonkey"))])
def test_function_and_file_part_where_the_debug_information_says(capture: str) -> None:
    """Every object with debug information has the file of its first entry, but for two quirks of V8: a name without a
    file, where the entry has what sourceURL says, and an entry whose first 16 bytes were freed before they were read.
    """
    producer = Producer(CAPTURES[capture])
    compared = 0
    for raw, debug_info in loads_of(dump_of(capture)):
        name = producer.parse(raw)
        if not debug_info or DEBUG_HEADER.unpack_from(debug_info)[1] == 0:
            continue
        file = debug_info[DEBUG_HEADER.size + DEBUG_ENTRY.size :]
        expected = name.file.encode() + b"\0"
        if producer.name == "V8" and not file.startswith(expected):
            assert not name.file or file[16:].startswith(expected[16:]), raw
        else:
            assert file.startswith(expected), raw
            compared += 1
    assert compared > 50
