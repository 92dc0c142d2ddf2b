"""A fuzz campaign as JSON."""

from ir_scatter.fuzz.campaign import Campaign
from ir_scatter.report.characters import dumps


def render(campaign: Campaign) -> str:
    return dumps(campaign.as_json())
