"""Repositories in which the site looks up whether sessions' commits landed."""

import secrets

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from grading.access.recording import record
from grading.agent.views import site_address
from grading.models import Project, Repository
from grading.models.audit import AuditKind
from grading.outcomes import addresses
from grading.outcomes.addresses import BadAddress
from grading.outcomes.discovery import find_local_repositories
from grading.outcomes.following import TOKEN_PURPOSE, look_up_soon, mirror_of
from grading.outcomes.github import SECRET_PURPOSE
from grading.outcomes.mirror import BRANCH_NAME
from grading.plain import counted, primary_key
from grading.screens.http import StaffRequest, staff_view
from grading.signals.remotes import project_key
from gradingsite.sealing import seal

CHANGE = "grading.change_repository"
SUGGESTED = 10


class RepositoryForm(forms.Form):
    url = forms.CharField(
        max_length=500,
        label="Address",
        help_text="https://…, ssh://… or git@host:path, or the full path of a folder on the server.",
    )
    default_branch = forms.CharField(max_length=200, initial="main", label="Default branch")
    token = forms.CharField(
        max_length=400,
        required=False,
        label="Token",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="For a private repository over https, enter a read-only token. It is stored encrypted.",
    )
    credits_history = forms.BooleanField(
        required=False,
        label="Credit commits from before today",
        help_text=(
            "Each earlier commit is credited to the session whose log shows that it made the commit. Leave this off "
            "if agents could invent such logs."
        ),
    )

    def clean_url(self) -> str:
        try:
            url = addresses.parse(self.cleaned_data["url"]).url
        except BadAddress as error:
            text = str(error)
            raise forms.ValidationError(f"{text[:1].upper()}{text[1:]}.") from None
        if Repository.objects.filter(url=url).exists():
            raise forms.ValidationError("This repository is already followed.")
        return url

    def clean_default_branch(self) -> str:
        name: str = self.cleaned_data["default_branch"]
        if not BRANCH_NAME.fullmatch(name) or ".." in name:
            raise forms.ValidationError("Expected the name of a branch, such as main.")
        return name

    def save(self, by: User) -> Repository:
        """Follow the repository."""
        data = self.cleaned_data
        key = project_key(data["url"])
        project = Project.objects.for_key(key)
        return Repository.objects.create(
            name=key.rpartition("/")[2],
            url=data["url"],
            default_branch=data["default_branch"],
            project=None if hasattr(project, "repository") else project,  # a project has one repository
            credits_history=data["credits_history"],
            sealed_token=seal(data["token"], purpose=TOKEN_PURPOSE) if data["token"] else "",
            added_by=by,
        )


@staff_view("grading.view_session", to_post=CHANGE)
def show(request: StaffRequest) -> HttpResponse:
    """The followed repositories; a POST follows one, or pauses, resumes, checks or removes one. With `local` in the
    query, the page asks which of this machine's to follow.
    """
    webhook = None
    form = RepositoryForm(initial={"url": _suggested_url(request.GET.get("project", "")), "default_branch": "main"})
    if request.method == "POST":
        act = request.POST.get("do", "")
        if act == "webhook":
            webhook = _make_webhook(request, request.POST.get("repository", ""))
        elif act == "follow_local":
            _follow_local(request)
            return redirect("admin:repositories")
        elif act:
            _change(request, act, request.POST.get("repository", ""))
            return redirect("admin:repositories")
        else:
            form = RepositoryForm(request.POST)
            if form.is_valid():
                with transaction.atomic():
                    repository = form.save(request.user)
                    record(AuditKind.PROJECT, f"followed the repository {repository}", detail=repository.url)
                messages.success(request, f"{repository} is followed. It is fetched within a minute.")
                return redirect("admin:repositories")
    own = Q(project__sessions__is_sample=False)
    may = request.user.has_perm(CHANGE)
    context = {
        "title": "Repositories",
        "form": form,
        "may": may,
        "local": find_local_repositories() if may else [],
        "is_choosing": may and "local" in request.GET,
        "repositories": Repository.objects.annotate(count=Count("project__sessions", filter=own)),
        "suggestions": _suggestions(),
        "webhook": webhook,
    }
    return TemplateResponse(request, "repositories/repositories.html", context, status=400 if form.errors else 200)


def _suggested_url(key: str) -> str:
    """The address of the project with this primary key, or "" if there is none."""
    project = Project.objects.filter(pk=primary_key(key)).first()
    return f"https://{project.key}" if project else ""


def _suggestions() -> list[Project]:
    """Projects with a remote that nobody follows yet, those with the most sessions first."""
    own = Count("sessions", filter=Q(sessions__is_sample=False))
    projects = Project.objects.filter(key__contains="/", repository=None).annotate(count=own).filter(count__gt=0)
    return list(projects.order_by("-count", "key")[:SUGGESTED])


def _follow_local(request: StaffRequest) -> None:
    """Follow the repositories of this machine whose projects were chosen."""
    chosen = set(request.POST.getlist("project"))
    with transaction.atomic():
        suggestions = [each for each in find_local_repositories() if str(each.project.pk) in chosen]
        for each in suggestions:
            repository = Repository.objects.create(
                name=each.folder.name[:200],
                url=str(each.folder),
                default_branch=each.default_branch,
                project=each.project,
                credits_history="credits_history" in request.POST,
                added_by=request.user,
            )
            record(AuditKind.PROJECT, f"followed the repository {repository}", detail=repository.url)
    count = len(suggestions)
    if chosen and count == len(chosen):
        are = "repository is followed. It is" if count == 1 else "repositories are followed. They are"
        messages.success(request, f"{count} {are} fetched within a minute.")
    else:
        messages.error(
            request, f"Of {len(chosen)} chosen repositories, {count} are now followed. Check the list again."
        )


def _make_webhook(request: StaffRequest, key: str) -> dict[str, str]:
    """Give the repository a new webhook secret. Returns the address and the secret, which is shown once, for GitHub."""
    repository = get_object_or_404(Repository, pk=primary_key(key))
    secret = secrets.token_hex(32)
    with transaction.atomic():
        repository.sealed_webhook_secret = seal(secret, purpose=SECRET_PURPOSE)
        repository.save(update_fields=["sealed_webhook_secret"])
        record(AuditKind.PROJECT, f"made a webhook secret for {repository}", detail=repository.url)
    address = f"{site_address(request)}{reverse('github_event', args=[repository.pk])}"
    return {"repository": str(repository), "address": address, "secret": secret}


def _change(request: StaffRequest, act: str, key: str) -> None:
    with transaction.atomic():
        repository = get_object_or_404(Repository.objects.select_for_update(), pk=primary_key(key))
        name = str(repository)
        if act == "check":
            count = look_up_soon(repository, timezone.now())
            sessions = counted(count, "session")
            messages.success(request, f"The commits of {sessions} in {name} are looked up within a minute.")
        elif act in {"pause", "resume"}:
            repository.is_paused = act == "pause"
            repository.save(update_fields=["is_paused"])
            record(AuditKind.PROJECT, f"{act}d the repository {name}", detail=repository.url)
            messages.success(request, f"{name} is {'paused' if act == 'pause' else 'followed again'}.")
        elif act == "remove":
            mirror = mirror_of(repository)
            repository.delete()
            transaction.on_commit(mirror.delete)
            record(AuditKind.PROJECT, f"removed the repository {name}", detail=repository.url)
            messages.success(request, f"{name} is no longer followed. Recorded outcomes stay.")
        else:
            messages.error(request, "Expected check, pause, resume or remove; nothing was changed.")
