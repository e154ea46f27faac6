import pytest
import torch

from neoranging.exceptions import DatasetError
from neoranging.nn.scaling import Scaling


def values():
    return torch.tensor([[1.0, -3.0, 7.0], [3.0, 1.0, 7.0], [2.0, 2.0, 7.0]]).double()


def test_range_to_unit_interval_and_back():
    scaling = Scaling("abc")
    scaling.fit_range(values())
    scaled = scaling(values())
    assert scaled.tolist() == [[-1.0, -1.0, 0.0], [1.0, 0.6, 0.0], [0.0, 1.0, 0.0]]
    torch.testing.assert_close(scaling.restore(scaled), values())


def test_symmetric_columns_share_their_largest_size():
    scaling = Scaling("abc")
    scaling.fit_range(values(), symmetric=[0, 1])
    assert scaling.center.tolist() == [0.0, 0.0, 7.0]
    assert scaling.scale.tolist() == [3.0, 3.0, 1.0]
    assert scaling.low.tolist() == [1.0, -3.0, 7.0]


def test_moments():
    scaling = Scaling("abc")
    scaling.fit_moments(values())
    assert scaling.center.tolist() == [2.0, 0.0, 7.0]
    assert scaling.scale.tolist() == pytest.approx([(2 / 3) ** 0.5, (14 / 3) ** 0.5, 1.0])
    assert scaling.rate(values())[0, 2] == 7.0


def test_outside_is_what_was_not_seen():
    scaling = Scaling("ab")
    assert not scaling.outside(torch.tensor([[1e9, -1e9]])).any()
    scaling.fit_range(torch.tensor([[0.0, 0.0], [1.0, 10.0]]).double())
    probe = torch.tensor([[1.1, 10.5], [-0.1, torch.nan]]).double()
    assert scaling.outside(probe).tolist() == [[True, True], [True, True]]
    assert scaling.outside(probe, slack=0.2).tolist() == [[False, False], [False, True]]


@pytest.mark.parametrize("bad", [torch.zeros(0, 2), torch.tensor([[1.0, torch.nan]])])
def test_what_cannot_be_fitted(bad):
    with pytest.raises(DatasetError, match="leave such arcs out"):
        Scaling("ab").fit_range(bad.double())
