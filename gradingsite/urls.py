"""The API and the hook file have addresses of their own; everything else is the admin site, at the root."""

from django.urls import include, path

from grading.screens.site import site

handler500 = "gradingsite.middleware.server_error"
urlpatterns = [
    path("", include("grading.urls")),
    path("", include("grading.screens.signin.urls")),
    path("", site.urls),
]
