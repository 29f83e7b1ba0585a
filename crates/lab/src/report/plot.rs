//! A plot of any kind.

use super::bars::BarPlot;
use super::heatmap::HeatMap;
use super::lines::LinePlot;
use super::points::PointPlot;
use super::ranks::{EffectPlot, RankPlot};

/// Drawing that a section can show below its table.
#[derive(Clone, PartialEq, Debug)]
pub enum Plot {
    /// Lines.
    Lines(LinePlot),
    /// Bars in groups.
    Bars(BarPlot),
    /// A coloured table of ratios.
    Heat(HeatMap),
    /// Named points.
    Points(PointPlot),
    /// Effects with their intervals.
    Effects(EffectPlot),
    /// Mean ranks.
    Ranks(RankPlot),
}

impl Plot {
    pub(super) fn figure(&self) -> String {
        match self {
            Plot::Lines(plot) => plot.figure(),
            Plot::Bars(plot) => plot.figure(),
            Plot::Heat(plot) => plot.figure(),
            Plot::Points(plot) => plot.figure(),
            Plot::Effects(plot) => plot.figure(),
            Plot::Ranks(plot) => plot.figure(),
        }
    }
}

impl From<LinePlot> for Plot {
    fn from(plot: LinePlot) -> Plot {
        Plot::Lines(plot)
    }
}

impl From<BarPlot> for Plot {
    fn from(plot: BarPlot) -> Plot {
        Plot::Bars(plot)
    }
}

impl From<HeatMap> for Plot {
    fn from(plot: HeatMap) -> Plot {
        Plot::Heat(plot)
    }
}

impl From<PointPlot> for Plot {
    fn from(plot: PointPlot) -> Plot {
        Plot::Points(plot)
    }
}

impl From<EffectPlot> for Plot {
    fn from(plot: EffectPlot) -> Plot {
        Plot::Effects(plot)
    }
}

impl From<RankPlot> for Plot {
    fn from(plot: RankPlot) -> Plot {
        Plot::Ranks(plot)
    }
}
