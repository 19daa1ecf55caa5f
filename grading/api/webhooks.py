"""The address to which GitHub sends events of a followed repository."""

import json

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from grading.models import Repository
from grading.outcomes import github


@csrf_exempt
def github_event(request: HttpRequest, pk: int) -> JsonResponse:
    """Take in a delivery. Without a valid signature, the reply does not even say whether the repository exists."""
    repository = Repository.objects.filter(pk=pk).first()
    signature = request.headers.get("X-Hub-Signature-256", "")
    if repository is None or not github.is_signed(repository, request.body, signature):
        return _error(403, "a delivery signed with the secret of this webhook")
    delivery, event = request.headers.get("X-GitHub-Delivery", ""), request.headers.get("X-GitHub-Event", "")
    if not delivery or not event:
        return _error(422, "the headers X-GitHub-Delivery and X-GitHub-Event")
    try:
        count = github.take_in(repository, delivery, event, json.loads(request.body))
    except (ValueError, RecursionError) as error:
        return _error(422, f"JSON as GitHub sends it with the content type application/json: {error}"[:500])
    return JsonResponse({"outcomes": count})


def _error(status: int, expected: str) -> JsonResponse:
    todo = "set content type, secret and address of the webhook as the page Repositories says"
    return JsonResponse({"error": "not taken", "expected": expected, "todo": todo}, status=status)
