"""The site's addresses and one that fails, for the page of an error of ours."""

from typing import NoReturn

from django.http import HttpRequest
from django.urls import path

from gradingsite.urls import urlpatterns as sites


def fails(request: HttpRequest) -> NoReturn:
    raise RuntimeError("a bug")


urlpatterns = [path("broken/", fails), *sites]
