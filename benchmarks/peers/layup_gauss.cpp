// Gauss's method of layup, asked by run.py: its gauss.cpp alone, without Python between.
//
//     layup_gauss OBSERVATIONS.csv
//
// One row of the table is an observation: arc, MJD TDB, direction and errors [rad], heliocentric
// state of the observer in ICRS axes [au, au/d]. Every line of the standard input is answered with
// "cpu" and the CPU seconds for each triplet; observations are made beforehand. No part of layup is
// in this file: run.py compiles it beside the source release of layup.

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "lib/gauss/gauss.cpp"

int main(int, char **arguments)
{
    constexpr double MU_SUN = 2.959122082855911e-4; // au^3/d^2
    constexpr double LIGHT = 173.144632674240;      // au/d
    constexpr double LEAST_DISTANCE = 1e-4;         // au

    std::ifstream file(arguments[1]);
    std::string line;
    std::getline(file, line); // names of the columns
    std::vector<orbit_fit::Observation> observations;
    while (std::getline(file, line))
    {
        std::replace(line.begin(), line.end(), ',', ' ');
        std::istringstream row(line);
        double arc, t, ra, dec, sigma_ra, sigma_dec;
        std::array<double, 3> x, v;
        row >> arc >> t >> ra >> dec >> sigma_ra >> sigma_dec >> x[0] >> x[1] >> x[2] >> v[0] >> v[1] >> v[2];
        observations.push_back(orbit_fit::Observation::from_astrometry(ra, dec, t, x, v));
    }
    const std::size_t n = observations.size() / 3;
    std::cout << "cpu ready" << std::endl;
    while (std::getline(std::cin, line))
    {
        std::size_t roots = 0;
        const std::clock_t begin = std::clock();
        for (std::size_t k = 0; k < n; ++k)
        {
            auto found = orbit_fit::gauss(MU_SUN, observations[3 * k], observations[3 * k + 1],
                                          observations[3 * k + 2], LEAST_DISTANCE, LIGHT);
            roots += found ? found->size() : 0;
        }
        const double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
        std::cout.precision(9);
        std::cout << "cpu " << seconds / n << std::endl;
        std::cerr << roots << " roots of " << n << " triplets" << std::endl;
    }
}
