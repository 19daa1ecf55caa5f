"""The API's page in a real browser: readable, and quiet under the content security policy."""

import pytest

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [1440, 800])
def test_the_page_opens_without_a_complaint(page, width):
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/api/v1/docs")
    assert page.get_by_role("heading", name="Submit a finished session").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []
