"""Chat templates as transformers renders them: the reference of check_templates.py and template_vectors.py."""
import copy
import datetime

import jinja2
import jinja2.sandbox
from transformers.utils import chat_template_utils

NOW = "2025-02-01T09:05:00"  # what strftime_now sees, there and in `hearth template --now`


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromisoformat(NOW)


chat_template_utils.datetime = Clock


class Refusal(Exception):
    """The template called raise_exception; the text is its own."""


class Failure(Exception):
    """Rendering failed in another way."""


def compile_template(text):
    template = chat_template_utils._compile_jinja_template(text)
    # Templates that append to a list mean it, though transformers' sandbox forbids it.
    template.environment.__class__ = jinja2.sandbox.SandboxedEnvironment
    return template


def render(template, request):
    request = copy.deepcopy(request)
    for message in request["messages"]:
        if message.get("tool_calls") == []:  # none is the same as absent
            del message["tool_calls"]
    try:
        return template.render(**request)
    except jinja2.exceptions.TemplateError as error:
        if type(error) is jinja2.exceptions.TemplateError:
            raise Refusal(str(error)) from error
        raise Failure(f"{type(error).__name__}: {error}") from error
    except Exception as error:  # whatever Python raises inside of a template
        raise Failure(f"{type(error).__name__}: {error}") from error
