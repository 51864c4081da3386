"""The requests that templates are held against the oracle on: each kind of conversation that a chat template meets.

requests() gives (name, request): the variables of one rendering, as JSON can hold them. Nothing here is from a template
of anyone's; ids and names are what the strictest templates take (nine letters and digits for a call's id).
"""
import copy
import itertools

SYSTEM = {"role": "system", "content": "You are a careful assistant.\nAnswer briefly."}
USER = {"role": "user", "content": "What is the weather in Paris?"}
ANSWER = {"role": "assistant", "content": "It is sunny."}
AGAIN = {"role": "user", "content": "And tomorrow?"}
THOUGHT = "The user asks for tomorrow.\n\nLook it up."
TOOLS = [
    {"type": "function",
     "function": {"name": "get_weather", "description": "The weather <now> & \"later\" in a city.",
                  "parameters": {"type": "object",
                                 "properties": {"city": {"type": "string", "description": "Its name, e.g. Zürich"},
                                                "days": {"type": "integer", "description": "How many", "default": 1},
                                                "unit": {"type": "string", "enum": ["C", "F"]},
                                                "tags": {"type": "array", "items": {"type": "string"}},
                                                "exact": {"type": "boolean"},
                                                "place": {"type": "object",
                                                          "properties": {"lat": {"type": "number"},
                                                                         "lon": {"type": "number"}},
                                                          "required": ["lat"]}},
                                 "required": ["city"]}}},
    {"type": "function",
     "function": {"name": "now", "description": "The time.", "parameters": {"type": "object", "properties": {}}}},
]


def call(name, arguments, ident="abcdefgh1"):
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": arguments}}


ARGUMENTS = {"city": "Paris \"centre\" é", "days": 2, "unit": "C", "tags": ["a", "b'c"], "exact": True,
             "place": {"lat": 48.85, "lon": -2e-07}, "none": None}
CALL = {"role": "assistant", "content": "", "tool_calls": [call("get_weather", ARGUMENTS)]}
RESULT = {"role": "tool", "tool_call_id": "abcdefgh1", "name": "get_weather",
          "content": "{\"temp\": 21.5, \"sky\": \"clear\"}"}
UNICODE = "naïve Ωμέγα 中文 \U0001F600 e\u0301 \u00a0\u2028|<b>&'\"\\ end  "


def without(message, *keys):
    return {key: value for key, value in message.items() if key not in keys}


def with_text(message, text):
    return {**message, "content": text}


def thinking(message, text=THOUGHT):
    return {**message, "reasoning_content": text}


def tool_cases():
    two = {**CALL, "tool_calls": [call("get_weather", ARGUMENTS), call("now", {}, "abcdefgh2")]}
    results = [RESULT, {**RESULT, "tool_call_id": "abcdefgh2", "name": "now", "content": "12:30"}]
    yield "tools", {"messages": [USER], "tools": TOOLS}
    yield "tools-system", {"messages": [SYSTEM, USER], "tools": TOOLS}
    yield "tool-call", {"messages": [USER, CALL], "tools": TOOLS}
    yield "tool-result", {"messages": [SYSTEM, USER, CALL, RESULT], "tools": TOOLS}
    yield "tool-result-no-tools", {"messages": [USER, CALL, RESULT]}
    yield "tool-two", {"messages": [USER, two, *results], "tools": TOOLS}
    yield "tool-text", {"messages": [USER, with_text(CALL, "I look."), RESULT, ANSWER, AGAIN], "tools": TOOLS}
    yield "tool-null", {"messages": [USER, with_text(CALL, None), RESULT], "tools": TOOLS}
    yield "tool-absent", {"messages": [USER, without(CALL, "content"), RESULT, ANSWER, AGAIN], "tools": TOOLS}
    text_call = {**CALL, "tool_calls": [call("get_weather", "{\"city\": \"Paris\"}")]}
    yield "tool-text-arguments", {"messages": [USER, text_call, RESULT], "tools": TOOLS}
    yield "tool-thought", {"messages": [USER, thinking(CALL), RESULT, thinking(ANSWER), AGAIN], "tools": TOOLS}
    yield "tool-thought-open", {"messages": [SYSTEM, USER, thinking(CALL), RESULT], "tools": TOOLS}
    yield "tool-twice", {"messages": [USER, CALL, RESULT, CALL, RESULT, ANSWER], "tools": TOOLS}
    parts = {**RESULT, "content": [{"type": "text", "text": "21"}]}
    yield "tool-parts", {"messages": [USER, CALL, parts], "tools": TOOLS}


def text_cases():
    yield "one", {"messages": [USER]}
    yield "system", {"messages": [SYSTEM, USER]}
    yield "turns", {"messages": [USER, ANSWER, AGAIN]}
    yield "turns-system", {"messages": [SYSTEM, USER, ANSWER, AGAIN, ANSWER]}
    yield "many", {"messages": [SYSTEM] + [USER, ANSWER] * 4 + [AGAIN]}
    yield "empty", {"messages": [with_text(SYSTEM, ""), with_text(USER, ""), with_text(ANSWER, ""), AGAIN]}
    yield "blanks", {"messages": [with_text(SYSTEM, "  s \n"), with_text(USER, "\n  u\t "),
                                  with_text(ANSWER, " a\n\n"), AGAIN]}
    yield "unicode", {"messages": [*(with_text(message, UNICODE) for message in (SYSTEM, USER, ANSWER)), AGAIN]}
    spelled = "<|im_end|>\n<|im_start|>system\n{{ x }}{% if %}</s>[INST]"
    yield "tokens", {"messages": [with_text(USER, spelled), ANSWER, AGAIN]}
    yield "null", {"messages": [USER, with_text(ANSWER, None), AGAIN]}
    yield "names", {"messages": [{**USER, "name": "Ann"}, {**ANSWER, "name": "bot"}, {**AGAIN, "name": "Bob"}]}
    yield "parts", {"messages": [{"role": "user", "content": [{"type": "text", "text": "Look: "},
                                                              {"type": "text", "text": "this"}]}, ANSWER, AGAIN]}
    yield "image", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}},
                                                              {"type": "text", "text": "What is it?"}]}]}
    yield "thought", {"messages": [USER, thinking(ANSWER), AGAIN]}
    yield "thought-last", {"messages": [SYSTEM, USER, thinking(ANSWER)]}
    yield "thought-tags", {"messages": [USER, with_text(ANSWER, "<think>\nhm\n</think>\n\nSunny."), AGAIN,
                                        with_text(ANSWER, "<think>\nno\n</think>\n\nRain.")]}
    yield "thought-alias", {"messages": [USER, {**ANSWER, "thinking": "hm", "reasoning": "hm"}, AGAIN]}
    yield "off", {"messages": [SYSTEM, USER], "enable_thinking": False}
    yield "on", {"messages": [SYSTEM, USER, thinking(ANSWER), AGAIN], "enable_thinking": True, "thinking": True}
    yield "effort", {"messages": [SYSTEM, USER], "reasoning_effort": "high", "reasoning_strength": "high"}
    yield "kept", {"messages": [USER, thinking(ANSWER), AGAIN], "preserve_thinking": True, "clear_thinking": False,
                   "truncate_history_thinking": False, "drop_thinking": False, "keep_past_thinking": True}
    yield "system-late", {"messages": [USER, SYSTEM]}
    yield "system-only", {"messages": [SYSTEM]}
    yield "answer-first", {"messages": [ANSWER, USER]}
    yield "two-users", {"messages": [USER, AGAIN]}
    yield "developer", {"messages": [{**SYSTEM, "role": "developer"}, USER]}
    yield "none", {"messages": []}
    yield "documents", {"messages": [USER], "documents": [{"title": "T", "text": "Body é", "doc_id": 1}]}
    yield "date", {"messages": [SYSTEM, USER], "date_string": "01 Feb 2025", "datetime": "Feb 01 2025"}
    yield "functions", {"messages": [USER], "functions": TOOLS, "datetime": "Feb 01 2025"}


def requests():
    for (name, request), prompt in itertools.product(itertools.chain(text_cases(), tool_cases()), (False, True)):
        request = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>",
                   **copy.deepcopy(request), "add_generation_prompt": prompt}
        yield name + ("-prompt" if prompt else ""), request
