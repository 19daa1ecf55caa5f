"""URLs of programs, of signing in, and of the pages for people, at the root."""

from django.urls import include, path

handler500 = "gradingsite.middleware.server_error"
urlpatterns = [
    path("", include("grading.urls")),
    path("", include("grading.screens.signin.urls")),
    path("", include("grading.screens.urls")),
]
