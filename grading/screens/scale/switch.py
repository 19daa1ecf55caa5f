"""A version that is proposed on a bandit's page: put in force, or what is in force switched off, under a name."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from bandit.models import UnknownBandit


class ChangeForm(forms.Form):
    """`fingerprint` names what was on the page, to be put in force; without it what is in force is switched off."""

    version = forms.IntegerField(min_value=1)
    fingerprint = forms.CharField(max_length=16, required=False)
    note = forms.CharField(max_length=500, required=False)


Act = Callable[[User, dict[str, Any], str], str]


def answer(request: HttpRequest, name: str, act: Act) -> HttpResponse:
    """Do what the form says, and go back to the bandit's page with what was done, or why nothing was, in words.

    `act` is given who asks, the version with its note, and the fingerprint, and says what it did; it raises
    UnknownBandit, or ValueError in words.
    """
    form = ChangeForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Nothing was saved: the form lacked the version it was about. Look again and submit.")
        return redirect("admin:bandit", name=name)
    said = form.cleaned_data
    try:
        asked = {"version": said["version"], "note": said["note"].strip()}
        done = act(request.user, asked, said["fingerprint"])  # type: ignore[arg-type] # the screen needs a login
        messages.success(request, done)
    except UnknownBandit as error:
        raise Http404(str(error)) from error
    except ValueError as error:
        messages.error(request, str(error))
    return redirect("admin:bandit", name=name)
