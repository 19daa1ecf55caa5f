"""Prices: what each model costs here, a form that sets a price from a day on, and which agents have a subscription."""

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal

from django import forms
from django.contrib import messages
from django.db.models import Count, F, Q, Sum
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.utils import timezone

from grading.models import Agent, ModelPrice, SessionUsage
from grading.models.sessions import yours
from grading.models.spending import MAX_PRICE, PRICE_COLUMNS, PRICE_UNITS, TOKEN_COLUMNS, CostBasis
from grading.plain import UNSEEN, primary_key
from grading.screens.http import StaffRequest, staff_view
from grading.spending import repricing
from grading.spending.prices import RELEASE_DATE, PublishedPrices, price_on

CHANGE = "grading.change_modelprice"
PRICE_LABELS = ("Input", "Cached", "Cache writes", "Output")
LISTED = 100
# Models used since then are listed.
RECENT = dt.timedelta(days=90)


def dollars_field(label: str, *, help_text: str = "", required: bool = True) -> forms.DecimalField:
    """A form's field for dollars for a million tokens."""
    most = MAX_PRICE // PRICE_UNITS
    return forms.DecimalField(
        label=label, help_text=help_text, required=required, min_value=0, max_value=most, decimal_places=4
    )


class PriceForm(forms.Form):
    """A price in dollars for a million tokens. Cached input and cache writes cost as much as input by default."""

    model = forms.CharField(max_length=120, help_text="The full name, as transcripts write it.")
    valid_from = forms.DateField(
        label="From",
        widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
        help_text="The first day of use at this price.",
    )
    input_price = dollars_field("Input")
    cached_price = dollars_field("Cached input", required=False, help_text="Empty: as input.")
    cache_write_price = dollars_field("Cache writes", required=False, help_text="Empty: as input.")
    output_price = dollars_field("Output")

    def clean_model(self) -> str:
        name = str(self.cleaned_data["model"])
        if UNSEEN.search(name):
            raise forms.ValidationError(
                "The model’s name contains invisible characters. Type the name instead of pasting it."
            )
        return name

    def price(self) -> ModelPrice:
        """The unsaved price."""
        chosen = self.cleaned_data
        units = {}
        for name in PRICE_COLUMNS:
            value = chosen["input_price"] if chosen[name] is None else chosen[name]
            units[name] = int(value * PRICE_UNITS)
        return ModelPrice(model=chosen["model"], valid_from=chosen["valid_from"], **units)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """A model in use with its price today, in dollars for a million tokens: input, cached input, cache writes, output.

    `prices` are None if nobody published or typed one.
    """

    model: str
    sessions: int
    tokens: int
    unpriced: int
    prices: tuple[Decimal | None, ...] | None
    source: str

    @property
    def labelled_prices(self) -> list[tuple[str, Decimal | None]]:
        return list(zip(PRICE_LABELS, self.prices or [None] * len(PRICE_LABELS), strict=True))


@staff_view("grading.view_session", to_post=CHANGE)
def show(request: StaffRequest) -> HttpResponse:
    """The prices. A POST sets or removes one, or records which agents have a subscription."""
    form = PriceForm(initial={"valid_from": timezone.localdate(), "model": request.GET.get("model", "")[:120]})
    if request.method == "POST":
        act = request.POST.get("do", "")
        if act == "remove":
            price = get_object_or_404(ModelPrice, pk=primary_key(request.POST.get("price", "")))
            count = repricing.remove_price(price)
            messages.success(request, f"The price of {price} was removed, and {_sessions(count)} repriced.")
            return redirect("admin:prices")
        if act == "subscriptions":
            chosen = request.POST.getlist("agent")
            for agent in Agent.objects.filter(is_sample=False):
                repricing.set_subscription(agent, has_subscription=agent.name in chosen)
            messages.success(request, "The subscriptions are saved. Costs stay the same, only their label changes.")
            return redirect("admin:prices")
        form = PriceForm(request.POST)
        if form.is_valid():
            price = form.price()
            count = repricing.set_price(price, by=request.user)
            messages.success(request, f"The price of {price} was saved, and {_sessions(count)} repriced.")
            return redirect("admin:prices")
    context = {
        "title": "Prices",
        "form": form,
        "may": request.user.has_perm(CHANGE),
        "models": model_rows(),
        "typed": ModelPrice.objects.select_related("created_by")[:LISTED],
        "agents": Agent.objects.filter(is_sample=False),
        "release_date": RELEASE_DATE,
    }
    return TemplateResponse(request, "spending/prices.html", context, status=400 if form.errors else 200)


def model_rows() -> list[ModelRow]:
    """The models that the site's own sessions used lately, the most used first, each with its price today."""
    now = timezone.now()
    today = timezone.localdate(now)
    rows = SessionUsage.objects.filter(yours("session"), day__gte=today - RECENT, basis=CostBasis.TOKENS)
    tokens = sum((F(name) for name in TOKEN_COLUMNS[1:]), F(TOKEN_COLUMNS[0]))
    used = (
        rows.order_by()
        .values("model")
        .annotate(
            sessions=Count("session", distinct=True),
            tokens=Sum(tokens, default=0),
            unpriced=Count("session", distinct=True, filter=Q(cost_micro=None)),
        )
    )
    typed, published = list(ModelPrice.objects.all()), PublishedPrices()
    listed = []
    for row in used.order_by("-tokens", "model")[:LISTED]:
        price = price_on(typed, row["model"], today)
        prices: tuple[Decimal | None, ...] | None
        if price is None:
            prices = published.base_prices(row["model"], now)
            source = "published" if prices else ""
        else:
            prices = tuple(Decimal(getattr(price, name)) / PRICE_UNITS for name in PRICE_COLUMNS)
            source = "entered here"
        listed.append(
            ModelRow(
                model=row["model"],
                sessions=row["sessions"],
                tokens=row["tokens"],
                unpriced=row["unpriced"],
                prices=prices,
                source=source,
            )
        )
    return listed


def _sessions(count: int) -> str:
    return "1 session is" if count == 1 else f"{count:,} sessions are"
