"""Request bodies for dedicated grids."""

from __future__ import annotations

from rest_framework import serializers

from foundation.api.bodies import BodySerializer
from foundation.environment import environment
from realtime.models import Cluster

MOST_WRITE_PARTITIONS, MOST_QUERY_PARTITIONS = 64, 64
LEAST_IDLE_S, USUAL_IDLE_S, MOST_IDLE_S = 60, 1_800, 30 * 86_400


class ImageField(serializers.CharField):
    """The name of an image that the installation offers. Other images must not get its secrets."""

    def to_internal_value(self, data: object) -> str:
        text = str(super().to_internal_value(data))  # type: ignore[arg-type]
        offered = environment().rillbase_clusters_images
        if text not in offered:
            names = ", ".join(sorted(offered))
            raise serializers.ValidationError(
                f"The installation offers these images: {names}.", "not_offered"
            )
        return text


class ClusterCreation(BodySerializer):
    """The specification of a dedicated grid."""

    write_partitions = serializers.IntegerField(
        min_value=1,
        max_value=MOST_WRITE_PARTITIONS,
        default=2,
        help_text="Number of write partitions: into how many streams the tenant's writes are "
        "divided.",
    )
    query_partitions = serializers.IntegerField(
        min_value=1,
        max_value=MOST_QUERY_PARTITIONS,
        default=1,
        help_text="Number of query partitions: among how many nodes the tenant's live queries are "
        "divided. Each of them reads all writes.",
    )
    node_size = serializers.ChoiceField(
        Cluster.NodeSize.choices,
        default=Cluster.NodeSize.SMALL.value,
        help_text="Resources of each pod that runs grid nodes.",
    )
    tier = serializers.ChoiceField(
        Cluster.Tier.choices,
        default=Cluster.Tier.BURSTABLE.value,
        help_text="`guaranteed`: pods reserve all the resources that they may use.",
    )
    image = ImageField(
        allow_null=True,
        default=None,
        help_text="One of the images that the installation offers; null: its default.",
    )
    idle_after_s = serializers.IntegerField(
        min_value=LEAST_IDLE_S,
        max_value=MOST_IDLE_S,
        allow_null=True,
        default=USUAL_IDLE_S,
        help_text="Seconds without a live query after which the grid stops until there is one; "
        "null: it always runs.",
    )


class ClusterChange(ClusterCreation):
    """The fields of a dedicated grid that can be changed."""
